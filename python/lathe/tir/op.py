"""Scalar functions: each makes an expression. One reader serves them and the text of programs, so both agree."""

from .. import _lathe
from ..ir.node import NODE_CLASSES, Node, as_expr

Var = NODE_CLASSES["expr", "Var"]

# Functions of the text form besides the intrinsics: what they do, for people.
_FUNCTIONS = {
    "Add": "a + b", "Sub": "a - b", "Mul": "a * b", "Div": "a / b, truncated for integers",
    "Mod": "the remainder of Div", "FloorDiv": "a // b, rounded down", "FloorMod": "a % b, with the sign of b",
    "Min": "the smaller", "Max": "the larger", "EQ": "a == b", "NE": "a != b", "LT": "a < b", "LE": "a <= b",
    "GT": "a > b", "GE": "a >= b", "And": "a and b", "Or": "a or b", "Not": "not a",
    "div": "a / b, truncated for integers", "truncdiv": "a / b, truncated toward zero",
    "truncmod": "the remainder of truncdiv", "fmod": "the remainder of floats", "floordiv": "a // b, rounded down",
    "floormod": "a % b, with the sign of b", "ceildiv": "a / b, rounded up", "min": "the smaller",
    "max": "the larger", "Cast": "Cast(dtype, value): the value converted", "cast": "cast(value, dtype)",
    "Select": "Select(condition, a, b); both may be evaluated", "Ramp": "Ramp(base, stride, lanes): a vector",
    "ramp": "ramp(base, stride, lanes): a vector", "Broadcast": "Broadcast(value, lanes): a vector",
    "broadcast": "broadcast(value, lanes): a vector", "Shuffle": "Shuffle(vectors, indices): chosen lanes",
    "min_value": "the smallest finite value of a dtype", "max_value": "the largest finite value of a dtype",
    "vectorlow": "vectorlow(dtype, v): the first half of the lanes",
    "vectorhigh": "vectorhigh(dtype, v): the second half of the lanes",
    "vectorcombine": "vectorcombine(dtype, a, b): the lanes of both",
    "q_multiply_shift": "x * y * 2^-(q + s) of int32 numbers with q bits behind the point, halves upward",
    "call_intrin": "call_intrin(dtype, name, *args): a scalar function by its name",
    "Call": 'Call(dtype, "tir.exp", [x]): a scalar function by its name',
    "get_active_lane_mask": "get_active_lane_mask(dtype, base, limit): which of base, base + 1, ... lie below it",
    "ignore_loop_partition": "its argument: loops are split where that pays",
    "target": "target(config): what a function is compiled for, as its attribute",
    "infinity": "infinity of a floating-point dtype", "fabs": "absolute value", "StringImm": "a string",
}  # fmt: skip


def call_text(name, args, named):
    """The value of T.name(*args, **named), as the text of a program has it."""
    values, parts = {}, []
    for index, value in enumerate(args):
        values[f"_{index}"] = value
        parts.append(f"_{index}")
    for key, value in named.items():
        if key == "span":
            continue
        values[f"_{key}"] = value
        parts.append(f"{key}=_{key}")
    return _lathe.evaluate_script(f"T.{name}({', '.join(parts)})", values)


def _function(name, meaning):
    def made(*args, **named):
        return call_text(name, args, named)

    made.__name__ = made.__qualname__ = name
    made.__module__ = __name__
    made.__doc__ = meaning[0].upper() + meaning[1:] + "."
    return made


FUNCTIONS = {name: _function(name, meaning) for name, meaning in _FUNCTIONS.items()}
FUNCTIONS.update((name, _function(name, meaning)) for name, _, meaning in _lathe.intrinsics() if name not in FUNCTIONS)
globals().update(FUNCTIONS)


def is_dtype(name):
    """Whether there is a dtype of that name."""
    try:
        return as_expr(0, name) is not None
    except ValueError:
        return False


def const(value, dtype=None, span=None):
    """A constant; without a dtype, int64 or float32."""
    return as_expr(value, dtype)


def convert(value, span=None):
    """A number as a constant, a list of them as a list; nodes as they are."""
    return [convert(item) for item in value] if isinstance(value, (list, tuple)) else _converted(value)


def _converted(value):
    return value if isinstance(value, Node) else as_expr(value)


def _fold(name, conditions, neutral):
    result = None
    for condition in conditions:
        result = condition if result is None else FUNCTIONS[name](result, condition)
    return as_expr(neutral) if result is None else result


def all(*conditions, span=None):
    """Whether every condition holds."""
    return _fold("And", conditions, True)


def any(*conditions, span=None):
    """Whether some condition holds."""
    return _fold("Or", conditions, False)


def indexdiv(a, b, span=None):
    """The quotient of indices, rounded down."""
    return FUNCTIONS["floordiv"](a, b)


def indexmod(a, b, span=None):
    """The remainder that belongs to indexdiv."""
    return FUNCTIONS["floormod"](a, b)


power = FUNCTIONS["pow"]
