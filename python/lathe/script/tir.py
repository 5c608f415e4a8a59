"""The namespace T of tensor programs.

    @T.prim_func
    def add_one(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i in T.grid(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] + T.float32(1)

The body of a decorated function is never run: its text is read as a tensor program. What makes expressions here is
callable in Python as well; what makes statements has a meaning in a program only, and says so.
"""

import inspect

from ..names import refuser as _refuser
from ..tir import op as _op
from ..tir.index_map import IndexMap as _IndexMap
from ..tir.buffer import BufferLoad as _BufferLoad, decl_buffer as _declare
from . import source as _source

for _name, _made in _op.FUNCTIONS.items():
    globals()[_name] = _made

any, all = _op.any, _op.all
BufferLoad = _BufferLoad
Var = _op.Var


class ScalarType:
    """A scalar or vector type: T.float32(x) converts, T.int32() is a new variable, and A: T.int32 declares."""

    def __init__(self, name):
        self.name = name

    def __call__(self, expr=None, is_size_var=False, **named):
        if self.name == "handle" or expr is None:
            return Var("v", self.name, is_size_var)
        return _op.call_text(self.name, (expr,), named)

    def __lathe_value__(self):
        return self.name

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"T.{self.name}"

    def __eq__(self, other):
        return str(other) == self.name

    def __hash__(self):
        return hash(self.name)


def _type_names():
    lanes = ("", "x2", "x4", "x8", "x16", "x32", "x64")
    kinds = [f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32, 64)]
    kinds += ["float16", "float32", "float64", "bfloat16"]
    names = [kind + count for kind in kinds for count in lanes]
    narrow = [form for form in "e3m4 e4m3 e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz e8m0fnu".split()
              if _op.is_dtype(f"float8_{form}")]  # fmt: skip
    return names + [f"float8_{form}" for form in narrow] + ["float4_e2m1fn", "bool", "handle", "void"]


TYPES = {name: ScalarType(name) for name in _type_names()}
globals().update(TYPES)
boolean = TYPES["bool"]
Ptr = TYPES["handle"]


class _BufferName:
    """T.Buffer(shape, dtype): the type of a parameter, and a buffer. T.Buffer[shape, dtype] is its spelling of 2022."""

    def __call__(self, shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=0,
                 offset_factor=0, buffer_type="", axis_separators=None):  # fmt: skip
        return _declare(shape, dtype, "buffer", data, strides, elem_offset, scope, align, offset_factor, buffer_type,
                        axis_separators)  # fmt: skip

    def __getitem__(self, key):
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], (str, ScalarType)):
            return self(key[0], str(key[1]))
        return self(key)

    def __repr__(self):
        return "T.Buffer"


Buffer = _BufferName()


class _InPrograms:
    """A name that has a meaning in the text of a program only."""

    def __init__(self, name, meaning):
        self.name = name
        self.__doc__ = meaning

    def _refuse(self, *args, **named):
        raise TypeError(f"T.{self.name} has a meaning inside a function decorated with T.prim_func only")

    __call__ = __enter__ = __iter__ = __getitem__ = _refuse

    def __repr__(self):
        return f"T.{self.name}"


_STATEMENTS = {
    "grid": "For i, j in T.grid(m, n): a nest of loops.",
    "serial": "A loop whose iterations run one after the other.",
    "parallel": "A loop whose iterations run in any order, on any threads.",
    "vectorized": "A loop whose iterations are the lanes of vectors.",
    "unroll": "A loop that is written out.",
    "thread_binding": "A loop whose iterations are the threads of a device axis.",
    "block": "With T.block(name): the unit of computation.",
    "sblock": "The newer name of T.block.",
    "init": "With T.init(): what a reduction begins with.",
    "where": "T.where(condition): where a block runs.",
    "reads": "T.reads(A[...]): what a block reads.",
    "writes": "T.writes(A[...]): what a block writes.",
    "block_attr": "T.block_attr({...}): annotations of a block.",
    "func_attr": "T.func_attr({...}): attributes of a function.",
    "match_buffer": "A = T.match_buffer(a, shape, dtype): the buffer of a handle or of a region.",
    "alloc_buffer": "A = T.alloc_buffer(shape, dtype): a buffer of the enclosing block.",
    "decl_buffer": "A = T.decl_buffer(shape, dtype): a buffer for what follows.",
    "buffer_decl": "The older name of T.Buffer in a body.",
    "allocate": "a = T.allocate(extents, dtype, scope): memory for what follows.",
    "allocate_const": "a = T.allocate_const(data, dtype, extents): constant memory.",
    "evaluate": "T.evaluate(e): an expression for its effect.",
    "attr": "With T.attr(node, key, value): a statement under an annotation.",
    "LetStmt": "x = T.LetStmt(value): a name for a value.",
    "let": "With T.let(x, value): a name for a value.",
    "Assert": "With T.Assert(condition, message): stops the program where the condition does not hold.",
    "buffer_store": "T.buffer_store(A, value, indices, predicate): a store.",
    "Reduce": "A reduction inside an expression.",
    "Let": "T.Let(body, where={x: value}): an expression with a name for a value.",
    "comm_reducer": "How a reduction combines.",
    "reduce_axis": "An axis of a reduction inside an expression.",
    "iter_var": "A variable with a domain.",
    "launch_thread": "tx = T.launch_thread(thread, n), or with it: what follows is run by n threads.",
    "env_thread": "tx = T.env_thread(tag): a variable that T.launch_thread gives its domain.",
    "While": "With T.While(condition): a loop that runs while the condition holds.",
    "If": "With T.If(condition): a branch of `with T.Then()` and `with T.Else()`.",
    "Then": "What runs where the condition of T.If holds.",
    "Else": "What runs where the condition of T.If does not hold.",
    "handle_add_byte_offset": "T.handle_add_byte_offset(A.data, bytes): the address of a later element.",
    "isnullptr": "T.isnullptr(a): whether an address is that of nothing.",
    "Range": "The bounds of an axis.",
    "tvm_access_ptr": "T.tvm_access_ptr(T.type_annotation(dtype), A.data, offset, extent, mask): A.access_ptr.",
    "type_annotation": "T.type_annotation(dtype): what the pointer of T.tvm_access_ptr points to.",
}
for _name, _meaning in _STATEMENTS.items():
    globals()[_name] = _InPrograms(_name, _meaning)


class axis:  # noqa: N801 - the vocabulary's name
    """T.axis: the variables of a block."""

    spatial = S = _InPrograms("axis.spatial", "vi = T.axis.spatial(extent, value): an axis of independent iterations.")
    reduce = R = _InPrograms("axis.reduce", "vk = T.axis.reduce(extent, value): an axis that is summed over.")
    scan = _InPrograms("axis.scan", "An axis whose iterations run in order.")
    opaque = _InPrograms("axis.opaque", "An axis of which nothing is known.")
    remap = _InPrograms("axis.remap", 'vi, vk = T.axis.remap("SR", [i, k]): axes that run over the loops themselves.')


def meta_var(value):
    """A value of Python's in a program; here the value itself."""
    return value


def var(dtype, name="v"):
    """A variable; the spelling of 2022."""
    return Var(name, str(dtype))


def index_map(mapping, *, inverse_index_map=None, index_dtype="int64"):
    """The IndexMap of a function of indices: T.index_map(lambda i, j: (j, i // 4, i % 4))."""
    return _IndexMap.from_func(mapping, None, inverse_index_map, index_dtype=index_dtype)


def prim_func(func=None, private=False, check_well_formed=True, s_tir=None):
    """Reads the decorated function's text as a tensor program, and gives it as a PrimFunc."""
    frame = _source.caller(1)

    def decorate(function):
        if not inspect.isfunction(function):
            raise TypeError(f"T.prim_func decorates a function, not {type(function).__name__}")
        if _source.is_class_body(frame):
            return function  # read with its module
        module = _source.parse_function(function, frame, check_well_formed)
        made = module.items()[0][1]
        named = private or made.attrs.get("global_symbol")
        return made if named else made.with_attr("global_symbol", function.__name__)

    return decorate(func) if func is not None else decorate


class Macro:
    """Statements with parameters: in a program, a call of it stands for its body."""

    def __init__(self, function, frame, hygienic):
        self.__wrapped__ = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.hygienic = hygienic
        self.__lathe_macro__ = (_source.held_function(function, frame), hygienic)

    def __call__(self, *args, **named):
        raise TypeError(f"the macro '{self.__name__}' is called as a statement of a tensor program only")

    def __repr__(self):
        return f"T.macro({self.__name__})"


def macro(*args, hygienic=True):
    """A function whose calls in tensor programs stand for its body.

    hygienic: its free names mean what they do where it is defined; else what they do where it is called.
    """
    frame = _source.caller(1)

    def decorate(function):
        if not inspect.isfunction(function):
            raise TypeError(f"T.macro decorates a function, not {type(function).__name__}")
        return Macro(function, frame, hygienic)

    return decorate(*args) if args else decorate


__getattr__ = _refuser("T", globals())
