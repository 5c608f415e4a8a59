"""Questions about tensor functions: what they touch, what they cost, whether they are in order."""

import math

from .. import _lathe
from ..ir.module import as_module
from ..ir.node import NODE_CLASSES, BaseFunc, ForKind, IRModule
from ..ir.structural import structural_equal
from ..ir.transform import Pass, PassInfo
from ..names import refuser
from .stmt_functor import post_order_visit, pre_order_visit

_expr = {kind: made for (family, kind), made in NODE_CLASSES.items() if family == "expr"}
_stmt = {kind: made for (family, kind), made in NODE_CLASSES.items() if family == "stmt"}


def _functions(thing):
    module = as_module(thing, "what is analysed")
    return [module[name] for name, kind in module._kinds.items() if kind == "tir"]


def verify_well_formed(obj, assert_mode=True):
    """Whether a function or module is well formed; with assert_mode, what is wrong is raised."""
    return not _lathe.verify_module(as_module(obj, "what is verified"), assert_mode)


def verify_ssa(func):
    """Whether every variable of a function is defined once."""
    defined, twice = set(), []

    def define(variable):
        twice.extend([variable] if variable in defined else [])
        defined.add(variable)

    def visit(node):
        if isinstance(node, _stmt["For"]):
            define(node.loop_var)
        elif isinstance(node, (_stmt["LetStmt"], _expr["Let"])):
            define(node.var)
        elif isinstance(node, (_stmt["Allocate"], _stmt["AllocateConst"])):
            define(node.buffer_var)
        elif isinstance(node, _stmt["Block"]):
            for axis in node.iter_vars:
                define(axis.var)

    for parameter in func.params:
        define(parameter)
    post_order_visit(func, visit)
    return not twice


def undefined_vars(node, defs=()):
    """The variables that a statement or expression uses and does not define, in order; those of `defs` left out."""
    known = set(defs)
    return [v for v in _lathe.free_vars(node.body if isinstance(node, BaseFunc) else node) if v not in known]


def expr_deep_equal(lhs, rhs):
    """Whether two expressions are the same, of the same variables."""
    return structural_equal(lhs, rhs)


def estimate_tir_flops(stmt_or_mod):
    """The arithmetic operations of a statement, function or module. Loops of unknown extent count once."""
    if isinstance(stmt_or_mod, (IRModule, BaseFunc)):
        return sum(_lathe.estimate_flops(function.body)[0] for function in _functions(stmt_or_mod))
    return _lathe.estimate_flops(stmt_or_mod)[0]


def find_anchor_block(mod):
    """The block that decides how a module is scheduled: the reduction that does most, else the last block; or None."""
    found = [(_lathe.find_anchor_block(function), function) for function in _functions(mod)]
    found = [(block, estimate_tir_flops(function)) for block, function in found if block is not None]
    return max(found, key=lambda pair: pair[1])[0] if found else None


def detect_buffer_access_lca(func):
    """For each buffer the innermost loop or block around all its accesses; None where only the function is."""
    return dict(_lathe.buffer_access_lca(func))


def get_block_access_region(block, buffer_var_map=None):
    """What an instance of a block reads, what it writes, and what it touches in ways that are not seen."""
    reads, writes = _lathe.infer_regions(block)
    return [reads, writes, []]


def get_block_read_write_region(block, buffer_var_map=None):
    """What an instance of a block reads, and what it writes."""
    return get_block_access_region(block, buffer_var_map)[:2]


def calculate_allocated_bytes(func_or_mod):
    """The bytes that a function allocates, by memory scope; for a module, by the function's name.

    Buffers whose size is not a constant are left out.
    """
    if isinstance(func_or_mod, IRModule):
        return {name: calculate_allocated_bytes(func_or_mod[name])
                for name, kind in func_or_mod._kinds.items() if kind == "tir"}  # fmt: skip
    sizes = {}

    def allocate(scope, dtype, extents):
        counts = [getattr(extent, "value", None) for extent in extents]
        if None not in counts:
            sizes[scope] = sizes.get(scope, 0) + math.prod(counts) * _bytes(dtype)

    def visit(node):
        if isinstance(node, _stmt["Block"]):
            for buffer in node.alloc_buffers:
                allocate(str(buffer.scope), buffer.dtype, buffer.shape)
        elif isinstance(node, _stmt["Allocate"]):
            allocate(node.scope, node.dtype, node.extents)

    post_order_visit(func_or_mod, visit)
    return sizes


def calculate_workspace_bytes(func, workspace_byte_alignment=1):
    """The most bytes that a function's allocations take at one time, each rounded up to the alignment."""

    def size(dtype, extents):
        counts = [getattr(extent, "value", None) for extent in extents]
        bytes_ = 0 if None in counts else math.prod(counts) * _bytes(dtype)
        return -(-bytes_ // workspace_byte_alignment) * workspace_byte_alignment

    def most(node):
        own = 0
        if isinstance(node, _stmt["Block"]):
            own = sum(size(buffer.dtype, buffer.shape) for buffer in node.alloc_buffers)
        elif isinstance(node, _stmt["Allocate"]):
            own = size(node.dtype, node.extents)
        elif isinstance(node, _stmt["DeclBuffer"]) and node.buffer.data not in given:
            own = size(node.buffer.dtype, node.buffer.shape)
        inside = [0]

        def look(child):
            inside.append(most(child))
            return child

        _lathe.map_children(node, look)
        return own + max(inside)

    given = {buffer.data for buffer in func.buffer_map.values()}
    return most(func.body)


def _bytes(dtype):
    digits = "".join(c for c in dtype.split("x")[0].partition("_")[0] if c.isdigit())
    lanes = int(dtype.rpartition("x")[2]) if "x" in dtype and dtype.rpartition("x")[2].isdigit() else 1
    return lanes * (1 if dtype == "bool" else 8 if dtype == "handle" else -(-int(digits) // 8))


def verify_gpu_code(func, constraints):
    """Whether a function stays within what a device has.

    constraints: max_threads_per_block, max_thread_x/y/z, max_shared_memory_per_block, max_local_memory_per_block,
    max_vthread, each a number; those not given are not checked.
    """
    limits = dict(constraints)
    known = {"max_threads_per_block", "max_thread_x", "max_thread_y", "max_thread_z", "max_shared_memory_per_block",
             "max_local_memory_per_block", "max_vthread"}  # fmt: skip
    for name in limits:
        if name not in known:
            raise ValueError(f"there is no constraint '{name}', only {', '.join(sorted(known))}")
    threads, virtual = {}, 1

    def visit(node):
        nonlocal virtual
        if isinstance(node, _stmt["For"]) and node.kind == ForKind.THREAD_BINDING:
            tag, extent = node.thread_binding.thread_tag, getattr(node.extent, "value", math.inf)
            if tag.startswith("threadIdx"):
                threads[tag[-1]] = max(threads.get(tag[-1], 1), extent)
            elif tag.startswith("vthread"):
                virtual *= extent
        return True

    pre_order_visit(func, visit)
    sizes = calculate_allocated_bytes(func)
    shared = sum(size for scope, size in sizes.items() if scope.startswith("shared"))
    used = {"max_threads_per_block": math.prod(threads.values()), "max_shared_memory_per_block": shared,
            "max_local_memory_per_block": sizes.get("local", 0), "max_vthread": virtual}  # fmt: skip
    used.update((f"max_thread_{axis}", threads.get(axis, 1)) for axis in "xyz")
    return all(used[name] <= int(limit) for name, limit in limits.items())


def verify_memory(func):
    """Whether a function leaves the memory of its device to the device.

    False where its attribute "target" (a Target, a text or a dict with "kind") names a GPU (cuda, nvptx, rocm, opencl,
    metal, vulkan, webgpu, opengl) and it loads or stores, outside of loops bound to threadIdx or blockIdx, an element
    of a parameter or of a buffer of scope "global". Functions without target, and for processors, are in order.
    """
    return _lathe.verify_memory(func)


def identify_memcpy(stmt):
    """The outermost loop nests in a statement that are copies of memory: a [source, destination] of regions for each.

    Together the iterations of such a nest load each element of one contiguous region once, and store it unchanged to
    the element at the same distance from the start of another contiguous region; loops may be fused, split and
    reordered, and extents may be symbols. Left out, also where it is a copy: several stores; conditions that are not
    shown to hold; indices that are not affine, count down, hold a load or are not int64; a region that is not one range
    a dimension; regions of the same memory that may overlap.
    """
    return _lathe.identify_memcpy(stmt)


class _BoundsCheck(Pass):
    info = PassInfo(0, "tir.analysis.OOBChecker")

    def transform_module(self, mod, ctx):
        """The module."""
        _lathe.check_bounds(mod)
        return mod


def oob_checker():
    """A pass that leaves a module as it is, and raises lathe.CompileError where an access is certainly out of bounds.

    Each diagnostic, of code tir-access-out-of-bounds, has the line, the buffer, the index and what it ranges over, the
    extent, and values of loop variables for which the index is outside.

    Found is every load or store of which some iteration is shown to have an index below zero or not below the extent:
    with the extents of loops, the values bound to block axes, predicates, conditions, lets, assertions and assumptions
    taken into account. Where parameters and symbolic extents decide, it is found if it is out of bounds whatever they
    are, as long as it happens at all. What is not decided passes: where an index, an extent or a condition holds a
    load, a call, a product of variables, a truncating division or narrow arithmetic that may wrap; accesses with masks,
    in `while`, in loops that are left early, and after a return.
    """
    return _BoundsCheck()


def is_pure_function(func):
    """Whether a function neither writes its parameters nor calls what has effects."""
    return _impurity(func) is None


def assert_pure_function(func):
    """Raises AssertionError that says what makes a function impure."""
    why = _impurity(func)
    assert why is None, f"the function is not pure: it {why}"
    return True


def _impurity(func):
    parameters = {buffer.data for buffer in func.buffer_map.values()}
    found = []

    def visit(node):
        if isinstance(node, _stmt["BufferStore"]) and node.buffer.data in parameters:
            found.append(f"writes its parameter '{node.buffer.name}'")
        elif isinstance(node, _stmt["Evaluate"]) and isinstance(node.value, _expr["Call"]):
            found.append(f"evaluates `{node.value}` for its effect")
        elif isinstance(node, _stmt["AssertStmt"]):
            found.append("holds an assertion")

    post_order_visit(func, visit)
    return found[0] if found else None


__all__ = [
    "assert_pure_function", "calculate_allocated_bytes", "calculate_workspace_bytes", "detect_buffer_access_lca",
    "estimate_tir_flops",
    "expr_deep_equal", "find_anchor_block", "get_block_access_region", "get_block_read_write_region",
    "identify_memcpy", "is_pure_function", "oob_checker", "undefined_vars", "verify_gpu_code", "verify_memory",
    "verify_ssa", "verify_well_formed",
]  # fmt: skip

__getattr__ = refuser("tir.analysis", globals())
