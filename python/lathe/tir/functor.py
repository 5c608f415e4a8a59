"""Visitors and mutators of programs, written in Python.

    @tir.functor.mutator
    class Swap(tir.PyStmtExprMutator):
        def visit_add_(self, op):
            op = super().visit_add_(op)
            return tir.Sub(op.a, op.b)

    changed = Swap().visit_stmt(function.body)

There is a method for each kind of node, visit_for_, visit_buffer_load_ and so on. Those of a visitor go on to the
node's children; those of a mutator give the node with its children replaced.
"""

import re

from .. import _lathe
from ..ir.node import NODE_CLASSES, BaseFunc, PrimExpr, Stmt
from ..names import nearest, refuser

_FAMILIES = ("expr", "stmt", "buffer_region", "iter_var", "match_buffer", "comm_reducer")
# Where the vocabulary's word for a kind is not the kind's name in small letters.
_WORDS = {"IntImm": "int_imm", "FloatImm": "float_imm", "StringImm": "string_imm", "SeqStmt": "seq_stmt",
          "EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge", "And": "and", "Or": "or",
          "Not": "not"}  # fmt: skip


def method_of(kind):
    """The name of the method for a kind: visit_buffer_store_ for BufferStore."""
    word = _WORDS.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
    return f"visit_{word}_"


class _Functor:
    def visit_expr(self, expr):
        """An expression, by its kind."""
        return self._dispatch(expr)

    def visit_stmt(self, stmt):
        """A statement, by its kind."""
        return self._dispatch(stmt)

    def _dispatch(self, node):
        return getattr(self, method_of(type(node).__name__), self._default)(node)

    def _of_child(self, node):
        if isinstance(node, PrimExpr):
            return self.visit_expr(node)
        return self.visit_stmt(node) if isinstance(node, Stmt) else self._dispatch(node)

    def __call__(self, node):
        return self.visit_expr(node) if isinstance(node, PrimExpr) else self.visit_stmt(node)


class PyStmtExprVisitor(_Functor):
    """Looks at every node of a program."""

    def visit_expr(self, expr):
        """Looks at an expression, by its kind."""
        self._dispatch(expr)

    def visit_stmt(self, stmt):
        """Looks at a statement, by its kind; at a function's body, given a function."""
        self._dispatch(stmt.body if isinstance(stmt, BaseFunc) else stmt)

    def _default(self, node):
        for child in _lathe.children(node):
            self._of_child(child)


class PyStmtExprMutator(_Functor):
    """Makes another program of a program: what a method gives stands for the node. None keeps it."""

    def visit_stmt(self, stmt):
        """The statement changed; given a function, the function with its body changed."""
        if isinstance(stmt, BaseFunc):
            return stmt.with_body(self.visit_stmt(stmt.body))
        return self._dispatch(stmt)

    def _default(self, node):
        return _lathe.map_children(node, self._of_child)


def _default_method(name):
    def visit(self, op):
        return self._default(op)

    visit.__name__ = name
    visit.__doc__ = "Goes on to the node's children."
    return visit


for _family, _kind in NODE_CLASSES:
    if _family in _FAMILIES:
        for _base in (PyStmtExprVisitor, PyStmtExprMutator):
            _name = method_of(_kind)
            _method = _default_method(_name)
            _method.__qualname__ = f"{_base.__name__}.{_name}"
            setattr(_base, _name, _method)

# Names of other years.
for _base in (PyStmtExprVisitor, PyStmtExprMutator):
    for _name in ("attr", "assert"):
        setattr(_base, f"visit_{_name}_", getattr(_base, f"visit_{_name}_stmt_"))


def _checked(cls, base):
    if not isinstance(cls, type) or not issubclass(cls, base):
        raise TypeError(f"a class derived from {base.__name__} is expected")
    known = set(dir(base)) | {"visit_expr", "visit_stmt"}
    for name in vars(cls):
        if name.startswith("visit_") and name.endswith("_") and name not in known:
            raise TypeError(f"{cls.__name__}.{name} is never called; the nearest is {nearest(name, known)}")
    return cls


def visitor(cls):
    """Checks that the methods of a class derived from PyStmtExprVisitor are of kinds that there are."""
    return _checked(cls, PyStmtExprVisitor)


def mutator(cls):
    """Checks that the methods of a class derived from PyStmtExprMutator are of kinds that there are."""
    return _checked(cls, PyStmtExprMutator)


__all__ = ["PyStmtExprMutator", "PyStmtExprVisitor", "method_of", "mutator", "visitor"]

__getattr__ = refuser("tir.functor", globals())
