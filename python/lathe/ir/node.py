"""The classes of nodes: one a kind, made from what the C++ declarations say of each kind's fields."""

import enum
import inspect

from .. import _lathe
from .._lathe import IRModule, Node
from ..target import Target
from .printing import for_notebook, script, show, show_text


class ForKind(enum.IntEnum):
    """How the iterations of a loop run."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


class Range:
    """The half-open interval from `min` of length `extent`. Range(n) begins at 0; Range(begin, end) has both bounds."""

    def __init__(self, begin, end=None):
        if end is None:
            begin, end = 0, begin
        self.min = as_expr(begin)
        self.extent = as_expr(end) - self.min

    @classmethod
    def from_min_extent(cls, min_value, extent):
        """The interval of that length from `min_value`."""
        made = cls.__new__(cls)
        made.min, made.extent = as_expr(min_value), as_expr(extent)
        return made

    def __lathe_value__(self):
        return {"min": self.min, "extent": self.extent}

    def __repr__(self):
        return f"Range(min={self.min!r}, extent={self.extent!r})"


class _Printed(Node):
    """What all nodes share: text, and the course's ways to show it."""

    script, show = script, show

    def _written(self, name, options):
        return self._text(name or _name_of(self), options)

    def __str__(self):
        return self._text(_name_of(self))

    def __repr__(self):
        return self._text(_name_of(self))

    def _repr_html_(self):
        return for_notebook(self._text(_name_of(self)))

    def __eq__(self, other):
        return isinstance(other, Node) and self.same_as(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = Node.__hash__


def _name_of(node):
    name = node.attrs.get("global_symbol") if isinstance(node, BaseFunc) else None
    return name if isinstance(name, str) and name else "main"


class PrimExpr(_Printed):
    """A scalar expression. Operators build expressions; numbers take the other operand's type."""

    @property
    def dtype(self):
        """The type's name, as "float32"."""
        return _lathe.node_dtype(self)

    def astype(self, dtype, span=None):
        """The value converted."""
        return _evaluate("T.cast(a, t)", a=self, t=str(dtype)) if str(dtype) != self.dtype else self

    def __add__(self, other):
        return binary("+", self, other)

    def __radd__(self, other):
        return binary("+", other, self)

    def __sub__(self, other):
        return binary("-", self, other)

    def __rsub__(self, other):
        return binary("-", other, self)

    def __mul__(self, other):
        return binary("*", self, other)

    def __rmul__(self, other):
        return binary("*", other, self)

    def __truediv__(self, other):
        return binary("/", self, other)

    def __rtruediv__(self, other):
        return binary("/", other, self)

    def __floordiv__(self, other):
        return binary("//", self, other)

    def __rfloordiv__(self, other):
        return binary("//", other, self)

    def __mod__(self, other):
        return binary("%", self, other)

    def __rmod__(self, other):
        return binary("%", other, self)

    def __pow__(self, other):
        return binary("**", self, other)

    def __lshift__(self, other):
        return binary("<<", self, other)

    def __rshift__(self, other):
        return binary(">>", self, other)

    def __and__(self, other):
        return binary("&", self, other)

    def __or__(self, other):
        return binary("|", self, other)

    def __xor__(self, other):
        return binary("^", self, other)

    def __invert__(self):
        return _evaluate("not a" if self.dtype == "bool" else "~a", a=self)

    def __neg__(self):
        return _evaluate("-a", a=self)

    def __lt__(self, other):
        return binary("<", self, other)

    def __le__(self, other):
        return binary("<=", self, other)

    def __gt__(self, other):
        return binary(">", self, other)

    def __ge__(self, other):
        return binary(">=", self, other)

    def __eq__(self, other):
        return Comparison("==", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other):
        return Comparison("!=", self, other) if _is_operand(other) else NotImplemented

    __hash__ = Node.__hash__

    def equal(self, other, span=None):
        """The expression self == other."""
        return binary("==", self, other)

    def __bool__(self):
        value = _number_of(self)
        if value is not None:
            return bool(value)
        raise ValueError(
            f"`{self}` is known only when the program runs, so Python cannot branch on it; "
            "use T.if_then_else, T.Select, T.And, T.Or or T.Not"
        )


def _number_of(value):
    """A number, or the number that a constant is; None of others."""
    if isinstance(value, Node):
        value = getattr(value, "value", None) if type(value).__name__ in ("IntImm", "FloatImm") else None
    return value if isinstance(value, (bool, int, float)) else None


class Comparison:
    """a == b of expressions: in a program the expression; as a condition of Python whether both are one node, or one
    number.
    """

    def __init__(self, operator, a, b):
        self.operator, self.a, self.b = operator, a, b

    def __lathe_value__(self):
        return binary(self.operator, self.a, self.b)

    asobject = __lathe_value__

    def __bool__(self):
        same = isinstance(self.b, Node) and self.a.same_as(self.b)
        numbers = _number_of(self.a), _number_of(self.b)
        same = same or (None not in numbers and numbers[0] == numbers[1])
        return same if self.operator == "==" else not same

    def __repr__(self):
        return repr(self.asobject())

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.asobject(), name)


class Stmt(_Printed):
    """A statement of a tensor function."""


class BaseFunc(_Printed):
    """A function of a module."""

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with an attribute set, or several given as a dict; a Target becomes its text."""
        several = isinstance(attr_key_or_dict, dict)
        changes = dict(attr_key_or_dict) if several else {attr_key_or_dict: attr_value}
        changes = {key: str(given) if isinstance(given, Target) else given for key, given in changes.items()}
        return self._with(attrs={**self.attrs, **changes})

    def with_body(self, new_body, span=None):
        """The function with another body."""
        return self._with(body=new_body)

    def specialize(self, param_map):
        """The function with some parameters fixed: a number for a scalar, a buffer for one of symbolic sizes."""
        kept, changes = [], []
        for param in self.params:
            given = [value for key, value in param_map.items() if key.same_as(param)]
            own = self.buffer_map.get(param)
            if given and own is None:
                changes.append((param, given[0]))
                continue
            kept.append(param)
            if given:
                changes.extend(_sizes_fixed(own, given[0]))
        unknown = [key for key in param_map if not any(key.same_as(param) for param in self.params)]
        if unknown:
            raise ValueError(f"'{unknown[0]}' is no parameter of this function")
        return _lathe.substitute(self._with(params=kept), changes)

    def without_attr(self, attr_key):
        """The function without an attribute."""
        return self._with(attrs={name: value for name, value in self.attrs.items() if name != attr_key})


def _sizes(buffer):
    return "[" + ", ".join(str(getattr(size, "value", size)) for size in buffer.shape) + "]"


def _sizes_fixed(own, given):
    """What the symbols in the shape of a parameter's buffer become when it is one of this shape."""
    if len(own.shape) != len(given.shape) or own.dtype != given.dtype:
        raise ValueError(f"a buffer of {given.dtype}{list(given.shape)} is no {own.dtype}{list(own.shape)}")
    for symbol, size in zip(own.shape, given.shape):
        if type(symbol).__name__ == "Var":
            yield symbol, size
        elif not _lathe.structural_equal(symbol, size, False):
            raise ValueError(f"'{own.name}' of shape {_sizes(own)} does not become one of shape {_sizes(given)}")


_FAMILIES = {"expr": PrimExpr, "stmt": Stmt, "function": BaseFunc}
_OPERANDS = (int, float, PrimExpr, Comparison)
NODE_CLASSES: dict = {}  # by (family, kind)


def _is_operand(thing):
    return isinstance(thing, _OPERANDS) or hasattr(thing, "__lathe_value__")


def _evaluate(text, **names):
    return _lathe.evaluate_script(text, names)


def as_expr(value, dtype=None):
    """A number as a constant; an expression as it is."""
    return _lathe.expr(value, None if dtype is None else str(dtype))


def binary(operator, a, b):
    """`a operator b`: a number takes the other operand's type, an integer beside a float becomes one."""
    if not (_is_operand(a) and _is_operand(b)):
        return NotImplemented
    return _lathe.binary(operator, a, b)


# ---- classes ----

# Fields that Python shows or takes under other names than the declaration's, and orders of arguments that the field's
# users know. What is not here is as declared.
_ARGUMENTS = {
    "Block": ("iter_vars", "reads", "writes", "name", "body", "init", "alloc_buffers", "match_buffers", "annotations"),
    "PrimFunc": ("params", "body", "ret_type", "buffer_map", "attrs"),
    "IterVar": ("dom", "var", "type", "thread_tag"),
    "For": ("loop_var", "min", "extent", "kind", "body", "thread_binding", "annotations"),
}
_ALIASES = {
    "Block": {"name_hint": "name"},
    "Var": {"name_hint": "name"},
    "GlobalVar": {"name_hint": "name"},
    "IterVar": {"iter_type": "type"},
    "Reduce": {"source": "sources"},
}
# How many of the last arguments may be left out.
_OPTIONAL = {"Block": 4, "PrimFunc": 3, "For": 2, "IfThenElse": 1}
_BUILT = ("expr", "stmt", "buffer", "iter_var", "comm_reducer", "buffer_region", "match_buffer", "function")
_RANGES = {("IterVar", "dom"), ("BufferRegion", "region")}


def _as_range(value):
    if isinstance(value, list):
        return [_as_range(item) for item in value]
    if not value or value["min"] is None:
        return None
    return Range.from_min_extent(value["min"], value["extent"])


def _reader(kind, field, index):
    if (kind, field) in _RANGES:
        return lambda self: _as_range(_lathe.node_field(self, index))
    if (kind, field) == ("PrimFunc", "buffer_map"):
        return lambda self: dict(_lathe.node_field(self, index))
    if (kind, field) == ("For", "kind"):
        return lambda self: ForKind(_lathe.node_field(self, index))
    return lambda self: _lathe.node_field(self, index)


def _constructor(number, kind, fields):
    order = _ARGUMENTS.get(kind, fields)
    aliases = _ALIASES.get(kind, {})

    def __init__(self, *args, **named):
        if len(args) > len(order):
            raise TypeError(f"{kind} takes {len(order)} arguments ({', '.join(order)}), {len(args)} are given")
        given = dict(zip(order, args))
        for key, value in named.items():
            key = aliases.get(key, key)
            if key == "span":
                continue
            if key not in fields:
                raise TypeError(f"{kind} has no field '{key}'; it has {', '.join(fields)}")
            if key in given:
                raise TypeError(f"{kind}: '{key}' is given twice")
            given[key] = value
        prepare = _PREPARE.get(kind)
        if prepare:
            prepare(given)
        Node.__init__(self, number, [given.get(field) for field in fields])

    shown = {own: name for name, own in aliases.items() if kind == "Block"}  # as its users know it
    optional = order[len(order) - _OPTIONAL.get(kind, 0) :]
    kinds = inspect.Parameter
    __init__.__signature__ = inspect.Signature([
        kinds("self", kinds.POSITIONAL_OR_KEYWORD),
        *(kinds(shown.get(one, one), kinds.POSITIONAL_OR_KEYWORD, default=None if one in optional else kinds.empty)
          for one in order),
    ])  # fmt: skip
    return __init__


def _prepare_buffer_map(given):
    buffer_map = given.get("buffer_map")
    if isinstance(buffer_map, dict):
        given["buffer_map"] = list(buffer_map.items())


def _prepare_loop(given):
    if given.get("kind") is not None:
        given["kind"] = int(ForKind(given["kind"]))
    variable = given.get("loop_var")
    if isinstance(variable, PrimExpr):
        for bound in ("min", "extent"):
            if isinstance(given.get(bound), int):
                given[bound] = as_expr(given[bound], variable.dtype)


def _prepare_dtype(given):
    if given.get("dtype") is not None:
        given["dtype"] = str(given["dtype"])


def _prepare_var(given):
    given.setdefault("dtype", "int32")
    _prepare_dtype(given)


def _prepare_realize(given):
    if given.get("predicate") is None:
        given["predicate"] = True


_AXIS_TYPES = 5  # spatial, reduce, scan, opaque, thread_index


def _prepare_axis(given):
    kind = given.get("type")
    if kind is not None and not 0 <= kind < _AXIS_TYPES:
        raise ValueError(f"{kind} is no type of an axis, which are 0 to {_AXIS_TYPES - 1}")
    if isinstance(given.get("var"), str):
        extent = given["dom"].extent if isinstance(given.get("dom"), Range) else None
        given["var"] = NODE_CLASSES["expr", "Var"](given["var"], extent.dtype if extent is not None else "int64")
    if isinstance(given.get("dom"), (int, tuple)):
        bounds = given["dom"] if isinstance(given["dom"], tuple) else (given["dom"],)
        given["dom"] = Range(*bounds)


_PREPARE = {
    "PrimFunc": _prepare_buffer_map,
    "For": _prepare_loop,
    "Var": _prepare_var,
    "Cast": _prepare_dtype,
    "IntImm": _prepare_dtype,
    "FloatImm": _prepare_dtype,
    "Call": _prepare_dtype,
    "BlockRealize": _prepare_realize,
    "IterVar": _prepare_axis,
}


def _with(self, **changes):
    """A copy with some fields changed."""
    fields = type(self)._fields
    prepare = _PREPARE.get(type(self).__name__)
    if prepare not in (None, _prepare_var, _prepare_realize):
        prepare(changes)
    values = [changes.get(name, _lathe.node_field(self, index)) for index, name in enumerate(fields)]
    made = type(self).__new__(type(self))
    Node.__init__(made, type(self)._number, values)
    return made


def name_function(function, module, kind, name):
    """Lets a function that is made here be found, by documentation and stubs, as the class's own."""
    function.__module__, function.__name__, function.__qualname__ = module, name, f"{kind}.{name}"


def _make_classes():
    for number, (kind, family, fields) in enumerate(_lathe.node_kinds()):
        base = _FAMILIES.get(family, _Printed)
        namespace = {
            "__doc__": f"{kind}({', '.join(_ARGUMENTS.get(kind, fields))})",
            "__module__": "lathe.relax" if family.startswith(("relax", "struct", "binding")) else "lathe.tir",
            "_fields": tuple(fields),
            "_number": number,
            "_with": _with,
        }
        aliases = {field: field for field in fields} | _ALIASES.get(kind, {})
        for name, field in aliases.items():
            read = _reader(kind, field, fields.index(field))
            name_function(read, namespace["__module__"], kind, name)
            namespace[name] = property(read, doc=f"The field '{field}'.")
        if family in _BUILT and kind != "Function":
            namespace["__init__"] = _constructor(number, kind, fields)
            name_function(namespace["__init__"], namespace["__module__"], kind, "__init__")
        else:
            namespace["__init__"] = _not_built
        made = type(kind, (base,), namespace)
        NODE_CLASSES[family, kind] = made
        _lathe.register_node_class(number, made)


def _not_built(self, *args, **named):
    raise TypeError(f"{type(self).__name__} is not built from Python; programs come from scripts and importers")


def _value_as(number):
    return lambda self: number(self.value)


_make_classes()
for _kind, _names, _number in (("IntImm", ("int", "float", "index"), int), ("FloatImm", ("float",), float)):
    for _name in _names:
        _read = _value_as(float if _name == "float" else _number)
        name_function(_read, "lathe.tir", _kind, f"__{_name}__")
        setattr(NODE_CLASSES["expr", _kind], f"__{_name}__", _read)

__all__ = ["BaseFunc", "ForKind", "IRModule", "NODE_CLASSES", "Node", "PrimExpr", "Range", "Stmt", "as_expr"]
