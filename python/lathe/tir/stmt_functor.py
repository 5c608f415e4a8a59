"""Walking and changing programs."""

from .. import _lathe


def _root(node):
    return node.body if type(node).__name__ == "PrimFunc" else node


def post_order_visit(stmt, fvisit):
    """Calls fvisit on every node, children before their parent."""
    _lathe.post_order_visit(_root(stmt), fvisit)


def pre_order_visit(stmt, fvisit):
    """Calls fvisit on a node before its children, and goes on to those where it returns True."""
    _lathe.pre_order_visit(_root(stmt), fvisit)


def substitute(node, vmap):
    """The program with variables replaced."""
    return _lathe.substitute(node, list(vmap.items()))
