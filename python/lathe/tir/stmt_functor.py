"""Walking and changing programs."""

from .. import _lathe
from ..ir.node import NODE_CLASSES, BaseFunc
from ..names import refuser


def _root(node):
    return node.body if isinstance(node, BaseFunc) else node


def post_order_visit(stmt, fvisit):
    """Calls fvisit on every node, children before their parent."""
    _lathe.post_order_visit(_root(stmt), fvisit)


def pre_order_visit(stmt, fvisit):
    """Calls fvisit on a node before its children, and goes on to those where it returns True."""
    _lathe.pre_order_visit(_root(stmt), fvisit)


def substitute(node, vmap):
    """The program with variables replaced."""
    return _lathe.substitute(node, list(vmap.items()))


def renew_defs(func):
    """The function with a new variable in the place of each that it defines, so that both can stand side by side."""
    defined = list(func.params) + [buffer.data for buffer in func.buffer_map.values()]
    defined += [v for b in func.buffer_map.values() for part in (*b.shape, *b.strides) for v in _lathe.free_vars(part)]
    stmt = {kind: made for (family, kind), made in NODE_CLASSES.items() if family in ("stmt", "expr")}

    def visit(node):
        if isinstance(node, stmt["For"]):
            defined.append(node.loop_var)
        elif isinstance(node, (stmt["LetStmt"], stmt["Let"])):
            defined.append(node.var)
        elif isinstance(node, (stmt["Allocate"], stmt["AllocateConst"])):
            defined.append(node.buffer_var)
        elif isinstance(node, stmt["DeclBuffer"]):
            defined.append(node.buffer.data)
        elif isinstance(node, stmt["Block"]):
            defined.extend(axis.var for axis in node.iter_vars)
            defined.extend(buffer.data for buffer in node.alloc_buffers)
            defined.extend(match.buffer.data for match in node.match_buffers)

    post_order_visit(func, visit)
    unique = list(dict.fromkeys(defined))
    return _lathe.substitute(func, [(v, stmt["Var"](v.name, v.dtype)) for v in unique])


def ir_transform(stmt, preorder, postorder, only_enable=None):
    """The statement with nodes replaced.

    preorder(node) gives what replaces a node and is not looked into any more, or None. postorder(node) gives what
    replaces a node whose children were replaced already, or None to keep it. only_enable: names of the kinds that they
    are called for, as "tir.For"; all when None.
    """
    kinds = None if only_enable is None else {name.rpartition(".")[2] for name in only_enable}

    def change(node):
        enabled = kinds is None or type(node).__name__ in kinds
        if preorder is not None and enabled:
            made = preorder(node)
            if made is not None:
                return made
        node = _lathe.map_children(node, change)
        made = postorder(node) if postorder is not None and enabled else None
        return node if made is None else made

    return change(stmt)


__getattr__ = refuser("tir.stmt_functor", globals())
