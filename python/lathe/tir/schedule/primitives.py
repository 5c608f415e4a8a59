"""Schedule: a program transformed step by step, each step proved to keep its meaning.

The primitives are rows of the C++ table; PRIMITIVES says how their arguments are named in Python. A primitive that C++
has and this table lacks can be called too, with its arguments as they stand in a trace.
"""

import difflib
import enum
import inspect
import json
import math

from ... import _lathe
from ...errors import ScheduleError
from ...ir.module import as_module
from ...ir.node import BaseFunc, show_text
from ...names import why_not
from ..index_map import map_and_separators, map_text, ranges_text
from ..tensor_intrin import default_context
from .trace import Trace


class _Handle:
    """A loop, block or number of a schedule and of its copies."""

    kind = ""

    def __init__(self, index, owner):
        self.index, self._owner = index, owner

    def __eq__(self, other):
        return type(self) is type(other) and self.index == other.index and self._owner is other._owner

    def __hash__(self):
        return hash((self.kind, self.index))

    def __repr__(self):
        return f"{type(self).__name__}({self.kind[0]}{self.index})"


class LoopRV(_Handle):
    """A loop of a schedule."""

    kind = "loop"


class BlockRV(_Handle):
    """A block of a schedule."""

    kind = "block"


class ExprRV(_Handle):
    """A number of a schedule, decided by sampling."""

    kind = "expr"


SBlockRV = BlockRV
_HANDLES = {made.kind: made for made in (LoopRV, BlockRV, ExprRV)}

# The vocabulary's signatures. `block`, `loop` and `block_or_loop` are handles (or a block's name); names before the bar
# are positional in the trace's instruction, those after it are its named attributes.
PRIMITIVES = {
    "get_block": "name | func_name=None",
    "get_loops": "block",
    "get_child_blocks": "block_or_loop",
    "get_producers": "block",
    "get_consumers": "block",
    "get_output_blocks": "scope_block",
    "sample_categorical": "| candidates, probs, decision=None",
    "sample_perfect_tile": "loop | n, max_innermost_factor=16, decision=None",
    "sample_partitioned_tile": "loop | n, partition_pos=0, innerpart_factor=1, decision=None",
    "sample_compute_location": "block | decision=None",
    "merge": "*loops",
    "join": "*loops",
    "fuse": "*loops | preserve_unit_iters=True",
    "split": "loop | factors, preserve_unit_iters=True, disable_predication=False",
    "loop_partition": "loop | factors, preserve_unit_iters=True",
    "peel": "loop, multiple",
    "strip_mine": "loop, size",
    "reorder": "*ordered_loops",
    "reorder_block_iter_var": "block | new_order",
    "add_unit_loop": "block_or_loop",
    "parallel": "loop",
    "vectorize": "loop",
    "bind": "loop, thread_axis",
    "unroll": "loop",
    "cache_read": "block, read_buffer_index, storage_scope | consumer_blocks=None",
    "cache_write": "block, write_buffer_index, storage_scope | consumer_blocks=None",
    "reindex_cache_read": "block, read_buffer_index, storage_scope | index_map",
    "reindex_cache_write": "block, write_buffer_index, storage_scope | index_map",
    "cache_inplace": "block, read_buffer_index, storage_scope",
    "cache_index": "block, storage_scope | cse_thresh=0",
    "reindex": "block, buffer",
    "read_at": "loop, block, read_buffer_index, storage_scope",
    "write_at": "loop, block, write_buffer_index, storage_scope",
    "compute_at": "block, loop | preserve_unit_loops=False, index=-1",
    "reverse_compute_at": "block, loop | preserve_unit_loops=False, index=-1",
    "compute_inline": "block",
    "reverse_compute_inline": "block",
    "decompose_reduction": "block, loop",
    "fuse_reduction_epilogue": "reduction_block, epilogue_block",
    "rfactor": "loop | factor_axis",
    "prefetch": "block, read_buffer_index, loop, at | begin=0, end=1, of=1, level=2, in_turn=False, turns=1",
    "storage_align": "block, buffer_index | axis, factor, offset",
    "set_scope": "block, buffer_index, storage_scope",
    "unsafe_set_dtype": "block, buffer_index, dtype",
    "blockize": "target | preserve_unit_iters=True",
    "tensorize": "block_or_loop, tensor_intrin | preserve_unit_iters=True",
    "annotate": "block_or_loop, ann_key, ann_val",
    "unannotate": "block_or_loop, ann_key",
    "transform_layout": "block, buffer | index_map, pad_value=None, assume_injective_transform=False",
    "transform_block_layout": "block | index_map",
    "set_axis_separator": "block, buffer | axis_separators",
    "decompose_padding": "block, loop",
    "split_padding": "block",
    "pad_einsum": "block | padding",
    "rolling_buffer": "block, write_buffer_index",
    "enter_postproc": "",
    "unsafe_hide_buffer_access": "block, buf_type, buf_index_array",
    "annotate_buffer_access": "block, buffer_index, buf_type | gen_new_ranges",
}

# Options that the vocabulary has and that mean nothing else here when they have these values.
_NEUTRAL = {
    "preserve_unit_iters": True, "disable_predication": False, "consumer_blocks": None, "index": -1,
    "preserve_unit_loops": False, "func_name": None, "decision": None, "pad_value": None,
    "assume_injective_transform": False,
}  # fmt: skip
_LOOPS = ("loop",)
_BLOCKS = ("block", "scope_block", "reduction_block", "epilogue_block")


class Schedule:
    """A module under transformation.

    mod: an IRModule or a PrimFunc. Loops and blocks are handles, or for blocks names; a primitive that cannot be shown
    to keep the program's meaning raises ScheduleError with the reason and, unless error_render_level is "fast" or
    "none", the lines of the program that it is about; it leaves the program as it was. With
    enable_check=False only what a primitive cannot build is refused: that the result means the same is the caller's
    word.
    """

    def __init__(self, mod, *, seed=None, debug_mask="none", error_render_level="detail", enable_check=True):
        module = as_module(mod, "what a schedule works on")
        self._state = _lathe.ScheduleState.create(module, bool(enable_check), default_context())
        if debug_mask not in ("none", "all") and (isinstance(debug_mask, bool) or not isinstance(debug_mask, int)):
            raise ValueError(f'debug_mask is "none", "all" or a number, not {debug_mask!r}')
        if error_render_level not in ("detail", "fast", "none"):
            raise ValueError(f'error_render_level is "detail", "fast" or "none", not {error_render_level!r}')
        self._shows_program = error_render_level == "detail"
        self._enable_check, self._debug_mask = bool(enable_check), debug_mask
        self._owner = object()
        self._random = 1 if seed is None else int(seed)
        self._is_function = isinstance(mod, BaseFunc)

    # ---- state ----

    @property
    def mod(self):
        """The module as it is now."""
        return self._state.mod

    @property
    def trace(self):
        """What was done, instruction by instruction."""
        return Trace.of_rows(self._state.instructions())

    @property
    def state(self):
        """What the schedule knows of its program: `state.mod`, `state.get_sref(stmt)`, how it was asked to check."""
        return ScheduleState(self)

    @property
    def func_working_on(self):
        """The name of the function that get_block looks in."""
        return self._state.func_working_on

    def work_on(self, func_name):
        """Lets get_block look in that function."""
        self._run("work_on", [func_name], {})

    def copy(self):
        """A schedule of its own from here on; handles are good for both."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._state = self._state.copy()
        return made

    def seed(self, seed):
        """Sets where the random numbers begin."""
        self._random = int(seed)

    def fork_seed(self):
        """A seed for another schedule, different at each call."""
        self._random = (self._random * 6364136223846793005 + 1442695040888963407) % 2**63
        return self._random >> 1

    def get(self, rv_or_sref):
        """The loop, block or number that a handle stands for."""
        if not isinstance(rv_or_sref, _Handle):
            raise TypeError(f"a handle of this schedule is expected, not {type(rv_or_sref).__name__}")
        return self._state.get(*self._plain(rv_or_sref))

    def get_sref(self, rv_or_stmt):
        """The same as `get`: a loop or block is its own place."""
        return self.get(rv_or_stmt)

    def remove_rv(self, rv):
        """Forgets a handle: what it stands for stays, but by this handle nothing finds it any more."""
        if not isinstance(rv, _Handle):
            raise TypeError(f"a handle of this schedule is expected, not {type(rv).__name__}")
        self._state.remove(self._plain(rv))

    def show(self, *args, **options):
        """Prints the program, and the trace that led to it."""
        show_text(self.mod.script() + "\n" + str(self.trace))

    def __repr__(self):
        return f"Schedule({', '.join(self.mod._kinds)})"

    # ---- running primitives ----

    def _plain(self, value):
        if isinstance(value, _Handle):
            if value._owner is not self._owner:
                raise ScheduleError(f"{value!r} belongs to another schedule")
            return (value.kind, value.index)
        if isinstance(value, tuple) and value[:1] == ("index_map",):
            return value
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        return value

    def _handles(self, value):
        if isinstance(value, list):
            return [self._handles(item) for item in value]
        if isinstance(value, tuple) and len(value) == 2 and value[0] in _HANDLES:
            return _HANDLES[value[0]](value[1], self._owner)
        return value

    def _run(self, name, inputs, attributes):
        return self._handles(
            self._state.run(
                name,
                [self._plain(item) for item in inputs],
                {key: self._plain(v) for key, v in attributes.items()},
                self._shows_program,
            )
        )

    def _block(self, block, what="block"):
        if isinstance(block, str):
            return self.get_block(block)
        if not isinstance(block, BlockRV):
            raise TypeError(f"{what} is a block or the name of one, not {type(block).__name__}")
        return block

    def _checked(self, parameter, value):
        if parameter in _BLOCKS:
            return self._block(value, parameter)
        if parameter in _LOOPS and not isinstance(value, LoopRV):
            raise TypeError(f"{parameter} is a loop of get_loops, not {type(value).__name__}")
        if parameter in ("block_or_loop", "target") and isinstance(value, str):
            return self._block(value)
        if parameter == "target" and isinstance(value, (list, tuple)):
            return [self._block(item) for item in value]
        if parameter == "consumer_blocks" and value is not None:
            return [self._block(item, "a consumer") for item in ([value] if isinstance(value, str) else value)]
        if parameter == "index_map":
            return ("index_map", map_text(value))
        if parameter == "thread_axis" and not isinstance(value, str):
            return value.thread_tag
        if parameter in ("block_or_loop", "target") and not isinstance(value, (LoopRV, BlockRV, list, tuple)):
            raise TypeError(f"{parameter} is a loop or a block, not {type(value).__name__}")
        return value

    def _buffer_index(self, primitive, block, buffer):
        """A buffer's number among the reads or writes; it is given by number, name, node or (kind, number)."""
        by_kind = primitive in _BY_KIND
        if isinstance(buffer, (tuple, list)) and by_kind:
            return tuple(buffer)
        if isinstance(buffer, int):
            return ("read", buffer) if by_kind else buffer
        node = self.get(block)
        kinds = ("read", "write") if by_kind else ("write",) if primitive in _BY_WRITES else ("read",)
        name = buffer if isinstance(buffer, str) else buffer.name
        known = []
        for kind in kinds:
            for number, region in enumerate(getattr(node, kind + "s")):
                if region.buffer.name == name:
                    return (kind, number) if by_kind else number
                known.append(region.buffer.name)
        verb = " or ".join(kind + "s" for kind in kinds)
        raise ScheduleError(f"block '{node.name}' {verb} no buffer '{name}', only {', '.join(known) or 'nothing'}")

    # ---- where Python's form differs from the instruction's ----

    def transform_layout(self, block, buffer, index_map, pad_value=None, assume_injective_transform=False):
        """Stores a buffer's element where the map puts it: a function of the indices, an IndexMap, or its text.

        Where a function gives IndexMap.AXIS_SEPARATOR among its indices, the buffer's axis separators are set as well,
        by a set_axis_separator step after this one; both are done, or neither.
        """
        block = self._block(block)
        which = self._buffer_index("transform_layout", block, buffer)

        def rank():
            node = self.get(block)
            for number, region in enumerate({"read": node.reads, "write": node.writes}.get(which[0], [])):
                if number == which[-1]:
                    return len(region.buffer.shape)
            raise ScheduleError(f"block '{node.name}' has no buffer {which!r}")

        text, separators = map_and_separators(index_map, rank)
        before = self._state.copy() if separators else None
        _transform_layout(self, block, which, text, pad_value, assume_injective_transform)
        if separators:
            try:
                self.set_axis_separator(block, which, separators)
            except ScheduleError:
                self._state = before
                raise

    def sample_categorical(self, candidates, probs, decision=None):
        """One of `candidates`, drawn with these probabilities; `decision` is the index of the one to take."""
        values = [_whole(value, "a candidate") for value in candidates]
        probs = [float(probability) for probability in probs]
        if len(values) != len(probs) or not values:
            raise ScheduleError(f"{len(values)} candidates with {len(probs)} probabilities")
        if decision is None:
            draw, decision = self.fork_seed() / 2**62 * sum(probs), 0
            for decision, probability in enumerate(probs):
                draw -= probability
                if draw < 0:
                    break
        decision = _whole(decision, "a decision")
        return self._run("sample_categorical", [], {"candidates": values, "probs": probs, "decision": decision})

    def sample_perfect_tile(self, loop, n, max_innermost_factor=16, decision=None):
        """`n` factors of a loop's extent, the last of at most max_innermost_factor; `decision` are those to take."""
        loop, n = self._checked("loop", loop), _whole(n, "n")
        most = _whole(max_innermost_factor, "max_innermost_factor")
        if decision is None:
            decision = self._tile(self._extent(loop), n, most)
        factors = [_whole(factor, "a factor") for factor in decision]
        return self._run("sample_perfect_tile", [loop], {"n": n, "max_innermost_factor": most, "decision": factors})

    def sample_partitioned_tile(self, loop, n, partition_pos=0, innerpart_factor=1, decision=None):
        """`n` factors of a loop's extent; those from number partition_pos on make a multiple of innerpart_factor."""
        loop, n = self._checked("loop", loop), _whole(n, "n")
        outer, multiple = _whole(partition_pos, "partition_pos"), _whole(innerpart_factor, "innerpart_factor")
        if decision is None:
            decision = self._partitioned_tile(self._extent(loop), n, outer, multiple)
        factors = [_whole(factor, "a factor") for factor in decision]
        options = {"n": n, "partition_pos": outer, "innerpart_factor": multiple, "decision": factors}
        return self._run("sample_partitioned_tile", [loop], options)

    def sample_compute_location(self, block, decision=None):
        """A place to compute a block at, drawn from those where compute_at is legal.

        decision: the number of a loop around the block's first consumer, -1 for where it is, or -2 for inlined.
        """
        block = self._block(block)
        if decision is None:
            places = self._state.compute_locations(block.index)
            decision = places[self.fork_seed() % len(places)]
        return self._run("sample_compute_location", [block], {"decision": _whole(decision, "a decision")})

    def _extent(self, loop):
        return getattr(self.get(loop).extent, "value", 0)  # a symbolic one has no tiles: the instruction refuses it

    def _tile(self, extent, n, most):
        if not 0 < n <= _MOST_FACTORS:
            return []  # the instruction says what is wrong with it
        factors = [1] * n
        for index in range(n - 1, 0, -1):
            divisors = [d for d in _divisors(extent) if d <= most or index < n - 1]
            factors[index] = divisors[self.fork_seed() % len(divisors)] if divisors else 1
            extent //= factors[index]
        return [extent, *factors[1:]]

    def _partitioned_tile(self, extent, n, outer, multiple):
        if not 0 <= outer <= n or multiple < 1 or extent % multiple:
            return []
        # What is drawn beyond the multiple goes to either part.
        rest = _divisors(extent // multiple)
        inner = extent if outer == 0 else 1 if outer == n else multiple * rest[self.fork_seed() % len(rest)]
        return self._tile(extent // inner, outer, extent) + self._tile(inner, n - outer, extent)

    def can_decompose_padding(self, block, loop):
        """Whether decompose_padding would do it there."""
        try:
            self.copy().decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    def __getattr__(self, name):
        if not name.startswith("_") and name in _lathe.instruction_kinds():
            return lambda *inputs, **attributes: self._run(name, inputs, attributes)
        known = [member for member in dir(type(self)) if not member.startswith("_")]
        if why := why_not("Schedule", name):
            raise AttributeError(f"a schedule has no '{name}': {why}")
        near = difflib.get_close_matches(name, known, 1)
        raise AttributeError(f"a schedule has no '{name}'" + (f"; the nearest name is '{near[0]}'" if near else ""))


# Of what one loop is tiled into; more is no tile, and would only be slow.
_MOST_FACTORS = 1024


def _whole(value, what):
    """A number as an int."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is a whole number, not {value!r}")
    return int(value)


def _divisors(number):
    small = [d for d in range(1, math.isqrt(max(number, 0)) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


class ScheduleDebugMask(enum.IntFlag):
    """What debug_mask may say. Every step is verified here whatever it says."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class ScheduleState:
    """What a schedule knows of its program."""

    def __init__(self, schedule):
        self._schedule = schedule

    @property
    def mod(self):
        """The module as it is now."""
        return self._schedule.mod

    @property
    def enable_check(self):
        """Whether steps are proved."""
        return self._schedule._enable_check

    @property
    def debug_mask(self):
        """As it was given; nothing depends on it."""
        return self._schedule._debug_mask

    def get_sref(self, stmt):
        """The loop or block: it is its own place."""
        return self._schedule.get(stmt) if isinstance(stmt, _Handle) else stmt


_BY_WRITES = {"cache_write", "cache_inplace", "reindex_cache_write", "set_scope", "write_at", "storage_align",
              "unsafe_set_dtype", "rolling_buffer"}  # fmt: skip
_BY_KIND = {"reindex", "transform_layout", "set_axis_separator"}
_BUFFERS = ("read_buffer_index", "write_buffer_index", "buffer_index", "buffer")


def _parameters(row):
    """The row's parameters, and the number of those that are inputs of the instruction."""
    before, _, after = row.partition("|")
    parameters, inputs = [], 0
    for part, is_input in ((before, True), (after, False)):
        for text in filter(None, (item.strip() for item in part.split(","))):
            name, _, default = text.partition("=")
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            if name.startswith("*"):
                kind = inspect.Parameter.VAR_POSITIONAL
            elif parameters and parameters[-1].kind in (
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.KEYWORD_ONLY,
            ):
                kind = inspect.Parameter.KEYWORD_ONLY
            value = json.loads(default.lower().replace("none", "null")) if default else inspect.Parameter.empty
            parameters.append(inspect.Parameter(name.strip("*"), kind, default=value))
            inputs += is_input
    return parameters, inputs


def _method(primitive, row):
    parameters, input_count = _parameters(row)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([own, *parameters])

    def method(self, *args, **named):
        bound = signature.bind(self, *args, **named)
        bound.apply_defaults()
        inputs, attributes, block = [], {}, None
        for number, parameter in enumerate(parameters):
            value = bound.arguments[parameter.name]
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                inputs.extend(self._checked("loop", item) for item in value)
                continue
            value = self._checked(parameter.name, value)
            if parameter.name == "block":
                block = value
            if parameter.name in _BUFFERS and block is not None:
                value = self._buffer_index(primitive, block, value)
            if parameter.name == "gen_new_ranges":
                value = ("index_map", ranges_text(value, len(self.get(block).iter_vars)))
            if number < input_count:
                inputs.append(value)
            elif not (parameter.name in _NEUTRAL and value == _NEUTRAL[parameter.name]):
                attributes[parameter.name] = value
        return self._run(primitive, inputs, attributes)

    method.__name__ = method.__qualname__ = primitive
    method.__signature__ = signature
    method.__doc__ = f"{primitive}{inspect.Signature(parameters)}"
    return method


_transform_layout = _method("transform_layout", PRIMITIVES["transform_layout"])

for _primitive, _row in PRIMITIVES.items():
    if _primitive not in vars(Schedule):
        setattr(Schedule, _primitive, _method(_primitive, _row))

for _newer, _own in {"get_sblock": "get_block"}.items():
    setattr(Schedule, _newer, getattr(Schedule, _own))
