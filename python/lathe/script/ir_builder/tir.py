"""The namespace T of builders: tensor functions. Scalar functions and types are those of lathe.script.tir."""

from ... import _lathe
from ...errors import ScriptError
from ...ir.node import NODE_CLASSES, ForKind, PrimExpr, Range, Stmt, as_expr
from ...names import refuser
from ...tir import op as _op
from ...tir.buffer import decl_buffer as _declared
from .. import tir as _script
from .frames import Frame, IRBuilder, Wrap, replaced
from .ir import ModuleFrame

globals().update(_op.FUNCTIONS)
globals().update(_script.TYPES)
boolean, Buffer = _script.boolean, _script.Buffer
all, any = _op.all, _op.any  # noqa: A001
_stmt = {kind: made for (family, kind), made in NODE_CLASSES.items() if family == "stmt"}
_BufferNode = NODE_CLASSES["buffer", "Buffer"]
_BufferLoad = NODE_CLASSES["expr", "BufferLoad"]
_Ramp = NODE_CLASSES["expr", "Ramp"]
Var = NODE_CLASSES["expr", "Var"]
IterVar = NODE_CLASSES["iter_var", "IterVar"]
BufferRegion = NODE_CLASSES["buffer_region", "BufferRegion"]
_Match = NODE_CLASSES["match_buffer", "MatchBufferRegion"]
_PrimFunc = NODE_CLASSES["function", "PrimFunc"]


# ---- functions ----


class PrimFuncFrame(Frame):
    """A tensor function."""

    described = "T.prim_func()"

    def __init__(self, private):
        super().__init__()
        self.private, self.name, self.params, self.buffers = private, None, [], {}
        self.attrs, self.ret_type, self.allocated = {}, "void", []

    def rename(self, value, name):
        """Another name for a buffer of the function."""
        if not isinstance(value, _BufferNode):
            return None
        made = value._with(name=name)
        for index, buffer in enumerate(self.allocated):
            if buffer.same_as(value):
                self.allocated[index] = made
                return made
        for param, buffer in self.buffers.items():
            if buffer.same_as(value):
                self.buffers[param] = made
                return made
        return None

    def finish(self, body):
        """The function."""
        attrs = dict(self.attrs)
        if self.name and not self.private:
            attrs.setdefault("global_symbol", self.name)
        body = _lathe.with_root(body, self.allocated)
        return _PrimFunc(self.params, body, self.ret_type, self.buffers, attrs)

    def __exit__(self, kind, value, trace):
        builder = IRBuilder.current()
        builder.frames.pop()
        if kind is None:
            from .frames import sequence

            made = self.finish(sequence(self.statements))
            in_module = len(builder.frames) > 0 and isinstance(builder.frames[-1], ModuleFrame)
            builder.emit((self.name, made) if in_module else made)


def prim_func(is_private=False):
    """With T.prim_func(): a tensor function."""
    return PrimFuncFrame(is_private)


def _function(what):
    return IRBuilder.current().innermost(PrimFuncFrame, what)


def func_name(name):
    """What the function is called."""
    _function("T.func_name").name = name


def func_attr(attrs):
    """Attributes of the function."""
    _function("T.func_attr").attrs.update(attrs)


def func_ret(ret_type):
    """The type of what the function returns."""
    _function("T.func_ret").ret_type = str(ret_type)


def arg(name, obj):
    """A parameter: a variable (T.handle(), T.int64()) or a buffer (T.Buffer(…))."""
    frame = _function("T.arg")
    if isinstance(obj, _BufferNode):
        handle_var = Var(f"{name}_handle", "handle")
        frame.params.append(handle_var)
        frame.buffers[handle_var] = obj._with(name=name, data=Var(name, "handle"))
        return frame.buffers[handle_var]
    if not isinstance(obj, Var):
        raise ScriptError(f"a parameter is a variable or a buffer, not a {type(obj).__name__}")
    frame.params.append(obj._with(name=name))
    return frame.params[-1]


# ---- buffers ----


def _buffer(name, shape, dtype, options):
    align = options.pop("align", 0)
    shape = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    return _declared(shape, str(dtype), name, data_alignment=align, **options)


def match_buffer(param, shape=None, dtype="float32", data=None, strides=None, elem_offset=None, scope="global",
                 align=0, offset_factor=0, buffer_type="default", axis_separators=None):  # fmt: skip
    """The buffer of a parameter, or of a region of another buffer inside a block."""
    options = {"data": data, "strides": strides, "elem_offset": elem_offset, "scope": scope, "align": align,
               "offset_factor": offset_factor, "axis_separators": axis_separators}  # fmt: skip
    if isinstance(param, Var):
        frame = _function("T.match_buffer")
        if not [one for one in frame.params if one.same_as(param)]:
            raise ScriptError(f"'{param.name}' is no parameter of this function")
        if param in frame.buffers:
            raise ScriptError(f"'{param.name}' is matched twice")
        if shape is None:
            raise ScriptError("the buffer of a parameter has a shape")
        frame.buffers[param] = _buffer(param.name, shape, dtype, options)
        return frame.buffers[param]
    source = _region(param)
    block = _block("T.match_buffer of a region")
    if shape is None:
        shape = [part.extent for part in source.region]
    made = _buffer(IRBuilder.current().fresh(source.buffer.name + "_part"), shape, dtype, options)
    block.matched.append(_Match(made, source))
    return made


def alloc_buffer(shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=0,
                 offset_factor=0, buffer_type="default", axis_separators=None):  # fmt: skip
    """A buffer of the enclosing block or function. IRBuilder.name names it."""
    builder = IRBuilder.current()
    options = {"data": data, "strides": strides, "elem_offset": elem_offset, "scope": scope, "align": align,
               "offset_factor": offset_factor, "axis_separators": axis_separators}  # fmt: skip
    made = _buffer(builder.fresh("buffer"), shape, dtype, options)
    for frame in reversed(builder.frames):
        if isinstance(frame, (BlockFrame, PrimFuncFrame)):
            frame.allocated.append(made)
            return made
    raise ScriptError("T.alloc_buffer stands inside a block or a function")


def decl_buffer(shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=0,
                offset_factor=0, buffer_type="", axis_separators=None):  # fmt: skip
    """With T.decl_buffer(…) as b: a buffer for what is inside."""
    options = {"data": data, "strides": strides, "elem_offset": elem_offset, "scope": scope, "align": align,
               "offset_factor": offset_factor, "axis_separators": axis_separators}  # fmt: skip
    made = _buffer(IRBuilder.current().fresh("buffer"), shape, dtype, options)
    return Wrap(lambda buffer, body: _stmt["DeclBuffer"](buffer, body), made)


def allocate(extents, dtype, scope="global", condition=None, annotations=None):
    """With T.allocate(…) as address: memory for what is inside."""
    if condition is not None:
        raise ScriptError("memory is allocated without a condition here")
    extents = list(extents) if isinstance(extents, (tuple, list)) else [extents]
    address = Var(IRBuilder.current().fresh("data"), "handle")
    return Wrap(
        lambda v, body: _stmt["Allocate"](v, str(dtype), list(map(as_expr, extents)), scope, body, annotations or {}),
        address,
    )


# ---- loops ----


class ForFrame(Frame):
    """A nest of loops of one kind."""

    described = "a loop"

    def __init__(self, names, ranges, kind, thread=None, annotations=None, dtype=None):
        super().__init__()
        self._names, self.ranges, self.kind = names, ranges, kind
        self._thread, self._annotations, self._dtype = thread, annotations, dtype
        self.variables, self._renamed = [], {}

    def begin(self, builder):
        """Makes the loops' variables."""
        self.variables = [
            Var(builder.fresh(name), self._dtype or domain.extent.dtype)
            for name, domain in zip(self._names, self.ranges)
        ]
        self.given = self.variables[0] if len(self.variables) == 1 else list(self.variables)

    def rename(self, value, name):
        """Another name for a loop's variable."""
        for variable in self.variables:
            if isinstance(value, Var) and value.same_as(variable):
                self._renamed[variable] = name
                return value
        return None

    def finish(self, body):
        """The loops."""
        for variable, domain in zip(reversed(self.variables), reversed(self.ranges)):
            made = variable
            if variable in self._renamed:
                made = variable._with(name=self._renamed[variable])
                body = replaced(body, variable, made)
            body = _stmt["For"](made, domain.min, domain.extent, self.kind, body, self._thread,
                                self._annotations or {})  # fmt: skip
        return body


def _range(start, stop):
    return Range(start) if stop is None else Range(start, stop)


def _loop(kind):
    def made(start, stop=None, *, annotations=None):
        return ForFrame(["i"], [_range(start, stop)], kind, None, annotations)

    return made


serial = _loop(ForKind.SERIAL)
parallel = _loop(ForKind.PARALLEL)
vectorized = _loop(ForKind.VECTORIZED)
unroll = _loop(ForKind.UNROLLED)


def _thread_axis(tag, dtype):
    return IterVar(None, Var(tag, dtype), 4, tag)


def thread_binding(start, stop=None, thread=None, *, annotations=None):
    """With T.thread_binding(n, thread="threadIdx.x") as tx: a loop whose iterations are threads."""
    if isinstance(stop, str):
        stop, thread = None, stop
    if thread is None:
        raise ScriptError("a thread axis is given: thread='threadIdx.x'")
    domain = _range(start, stop)
    axis_node = thread if isinstance(thread, IterVar) else _thread_axis(thread, domain.extent.dtype)
    return ForFrame(["tx"], [domain], ForKind.THREAD_BINDING, axis_node, annotations)


def launch_thread(thread, extent):
    """With T.launch_thread("blockIdx.x", n) as bx: what is inside is run by n threads."""
    return thread_binding(extent, thread=thread)


def grid(*extents):
    """With T.grid(m, n) as (i, j): a nest of loops."""
    if not extents:
        raise ScriptError("a grid has at least one loop")
    names = [("i", "j", "k", "l", "m", "n")[index % 6] for index in range(len(extents))]
    return ForFrame(names, [Range(extent) for extent in extents], ForKind.SERIAL)


# ---- blocks ----


class BlockFrame(Frame):
    """A block."""

    described = "T.block()"

    def __init__(self, name, no_realize):
        super().__init__()
        self.name, self.no_realize = name, no_realize
        self.iter_vars, self.values, self.reads, self.writes = [], [], None, None
        self.allocated, self.matched, self.annotations = [], [], {}
        self.predicate, self.init = None, None

    def rename(self, value, name):
        """Another name for a buffer that the block allocates."""
        for index, buffer in enumerate(self.allocated):
            if isinstance(value, _BufferNode) and buffer.same_as(value):
                self.allocated[index] = value._with(name=name)
                return self.allocated[index]
        return None

    def finish(self, body):
        """The block with its bindings."""
        made = _stmt["Block"](self.iter_vars, self.reads or [], self.writes or [], self.name, body, self.init,
                              self.allocated, self.matched, self.annotations)  # fmt: skip
        reads, writes = _lathe.infer_regions(made)
        made = made._with(
            reads=reads if self.reads is None else self.reads, writes=writes if self.writes is None else self.writes
        )
        if self.no_realize:
            return made
        return _stmt["BlockRealize"](self.values, True if self.predicate is None else self.predicate, made)


class InitFrame(Frame):
    """What a reduction begins with."""

    described = "T.init()"

    def finish(self, body):
        """Gives it to the block."""
        block_frame = _block("T.init")
        if block_frame.init is not None:
            raise ScriptError("the block has an init already")
        block_frame.init = body


def block(name="", no_realize=False):
    """With T.block(name): the unit of computation."""
    return BlockFrame(name, no_realize)


sblock = block


def _block(what):
    return IRBuilder.current().innermost(BlockFrame, what)


def init():
    """With T.init(): what a reduction begins with."""
    return InitFrame()


def where(predicate):
    """Where the block runs."""
    frame = _block("T.where")
    if frame.predicate is not None:
        raise ScriptError("the block has a condition already")
    frame.predicate = as_expr(predicate)


def _region(thing):
    if isinstance(thing, BufferRegion):
        return thing
    if isinstance(thing, _BufferNode):
        return BufferRegion(thing, [Range(extent) for extent in thing.shape])
    if not isinstance(thing, _BufferLoad):
        raise ScriptError(f"a region is a buffer or elements of one, not a {type(thing).__name__}")
    ranges = []
    for index in thing.indices:
        if isinstance(index, _Ramp):
            ranges.append(Range.from_min_extent(index.base, as_expr(index.lanes, index.base.dtype)))
        else:
            ranges.append(Range.from_min_extent(index, as_expr(1, index.dtype)))
    return BufferRegion(thing.buffer, ranges)


def _regions(given):
    items = given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    return [_region(item) for item in items]


def reads(*buffer_slices):
    """What the block reads."""
    frame = _block("T.reads")
    if frame.reads is not None:
        raise ScriptError("the block's reads are declared already")
    frame.reads = _regions(buffer_slices)


def writes(*buffer_slices):
    """What the block writes."""
    frame = _block("T.writes")
    if frame.writes is not None:
        raise ScriptError("the block's writes are declared already")
    frame.writes = _regions(buffer_slices)


def block_attr(attrs):
    """Annotations of the block."""
    _block("T.block_attr").annotations.update(attrs)


_KINDS = {"spatial": 0, "reduce": 1, "scan": 2, "opaque": 3}


def _axis(kind):
    def made(dom, binding, dtype=None):
        frame = _block(f"T.axis.{kind}")
        value = as_expr(binding, dtype)
        if isinstance(dom, (tuple, list)):
            dom = Range(as_expr(dom[0], value.dtype), as_expr(dom[1], value.dtype))
        elif not isinstance(dom, Range):
            dom = Range(as_expr(0, value.dtype), as_expr(dom, value.dtype))
        name = "v" + (binding.name if isinstance(binding, Var) else str(len(frame.iter_vars)))
        variable = Var(IRBuilder.current().fresh(name), value.dtype)
        frame.iter_vars.append(IterVar(dom, variable, _KINDS[kind], ""))
        frame.values.append(value)
        return variable

    made.__name__ = kind
    made.__doc__ = f"v = T.axis.{kind}(extent, value): an axis of the block."
    return made


class axis:  # noqa: N801 - the vocabulary's name
    """T.axis: the variables of a block."""

    spatial = S = staticmethod(_axis("spatial"))
    reduce = R = staticmethod(_axis("reduce"))
    scan = staticmethod(_axis("scan"))
    opaque = staticmethod(_axis("opaque"))

    @staticmethod
    def remap(kinds, bindings, dtype=None):
        """Axes that run over loops: "SSR" and the loops' variables."""
        if len(kinds) != len(bindings):
            raise ScriptError(f"{len(kinds)} letters for {len(bindings)} loops")
        made = []
        for kind, binding in zip(kinds, bindings):
            if kind not in "SR":
                raise ScriptError(f"an axis is 'S' or 'R' here, not '{kind}'")
            make = axis.spatial if kind == "S" else axis.reduce
            made.append(make(_domain_of(binding), binding, dtype))
        return made[0] if len(made) == 1 else made


def _domain_of(variable):
    for frame in IRBuilder.current().frames:
        if isinstance(frame, ForFrame):
            for own, domain in zip(frame.variables, frame.ranges):
                if own.same_as(variable):
                    return domain
    raise ScriptError("T.axis.remap takes variables of loops around the block")


# ---- statements ----


def evaluate(value):
    """An expression for its effect."""
    IRBuilder.current().emit(value if isinstance(value, Stmt) else _stmt["Evaluate"](as_expr(value, "int32")))


def buffer_store(buffer, value, indices, predicate=None):
    """A store."""
    indices = list(indices) if isinstance(indices, (tuple, list)) else [indices]
    if len(indices) != len(buffer.shape):
        raise ScriptError(f"buffer '{buffer.name}' has {len(buffer.shape)} dimensions, not {len(indices)}")
    value = value if isinstance(value, PrimExpr) else as_expr(value, buffer.dtype)
    IRBuilder.current().emit(_stmt["BufferStore"](buffer, value, list(map(as_expr, indices)), predicate))


def LetStmt(value, type_annotation=None, *, var=None):  # noqa: N802 - the vocabulary's name
    """With T.LetStmt(value) as x: a name for a value."""
    value = as_expr(value)
    variable = var if var is not None else Var(IRBuilder.current().fresh("x"), str(type_annotation or value.dtype))
    return Wrap(lambda v, body: _stmt["LetStmt"](v, value, body), variable)


def let(var, value):
    """With T.let(x, value): a name for a value."""
    return LetStmt(value, var=var)


def attr(node, attr_key, value):
    """With T.attr(node, key, value): what is inside under an annotation."""
    value = as_expr(value, None if isinstance(value, (str, PrimExpr)) else "int32")
    return Wrap(lambda _, body: _stmt["AttrStmt"](node, attr_key, value, body))


def Assert(condition, message):  # noqa: N802
    """With T.Assert(condition, message): what is inside runs where the condition holds; else the program stops."""
    from .frames import sequence

    check = _stmt["AssertStmt"](as_expr(condition), message)
    return Wrap(lambda _, body: sequence([check, body]))


def While(condition):  # noqa: N802
    """With T.While(condition): a loop that runs while the condition holds."""
    condition = as_expr(condition)
    return Wrap(lambda _, body: _stmt["While"](condition, body))


class IfFrame(Frame):
    """A branch."""

    described = "T.If()"

    def __init__(self, condition):
        super().__init__()
        self.condition, self.cases = condition, {}

    def add(self, thing):
        """Nothing stands beside its cases."""
        raise ScriptError("T.If holds T.Then() and T.Else() only")

    def finish(self, body):
        """The branch."""
        if "Then" not in self.cases:
            raise ScriptError("T.If has no T.Then()")
        return _stmt["IfThenElse"](self.condition, self.cases["Then"], self.cases.get("Else"))


class CaseFrame(Frame):
    """One case of a branch."""

    described = "a case"

    def __init__(self, case):
        super().__init__()
        self._case = case

    def begin(self, builder):
        """Asks for the branch around it."""
        if not builder.frames or not isinstance(builder.frames[-1], IfFrame):
            raise ScriptError(f"T.{self._case} stands inside T.If")

    def finish(self, body):
        """Gives it to the branch."""
        branch = IRBuilder.current().frames[-1]
        if self._case in branch.cases:
            raise ScriptError("the branch has this case already")
        branch.cases[self._case] = body


def If(condition):  # noqa: N802
    """With T.If(condition): a branch of T.Then() and T.Else()."""
    return IfFrame(as_expr(condition))


def Then():  # noqa: N802
    """What runs where the condition holds."""
    return CaseFrame("Then")


def Else():  # noqa: N802
    """What runs where it does not."""
    return CaseFrame("Else")


__getattr__ = refuser("ir_builder.tir", globals())
