"""Programs as JSON, and nodes by the names of their kinds."""

from .. import _lathe
from .node import NODE_CLASSES


def save_json(node):
    """A node, a module, or a value that holds them, as text that load_json reads."""
    return _lathe.save_json(node)


def load_json(json_str):
    """What save_json wrote: equal to it, with the variables and buffers shared that were. Modules are checked."""
    return _lathe.load_json(json_str)


def make_node(type_key, **kwargs):
    """A node of a kind, "tir.Add" or "Add", from its fields: what the class of that name makes."""
    space, _, name = type_key.rpartition(".")
    found = [made for (family, kind), made in NODE_CLASSES.items() if kind == name and _is_of(family, space)]
    if len(found) != 1:
        which = "is no kind of node" if not found else "is several kinds of nodes: say tir. or relax. before it"
        raise ValueError(f"'{type_key}' {which}")
    return found[0](**kwargs)


def _is_of(family, space):
    graphs = family.startswith("relax") or family in ("struct_info", "binding", "binding_block")
    return not space or space.split(".")[0] == ("relax" if graphs else "tir")
