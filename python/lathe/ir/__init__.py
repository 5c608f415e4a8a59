"""What both IRs share: modules, nodes, structural equality."""

from . import instrument, transform
from . import module as _module
from .module import GlobalVarMap, as_module
from .node import (
    NODE_CLASSES,
    BaseFunc,
    Comparison,
    ForKind,
    IRModule,
    Node,
    PrimExpr,
    Range,
    Stmt,
    as_expr,
)
from ..names import refuser as _refuser
from .saved import load_json, make_node, save_json
from .structural import (
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)

GlobalVar = NODE_CLASSES["expr", "GlobalVar"]
module = _module

__all__ = [
    "NODE_CLASSES", "BaseFunc", "Comparison", "ForKind", "GlobalVar", "GlobalVarMap", "IRModule", "Node", "PrimExpr",
    "Range", "Stmt", "as_expr", "as_module", "assert_structural_equal", "get_first_structural_mismatch", "instrument",
    "load_json", "make_node", "module", "save_json", "structural_equal", "structural_hash", "transform",
]  # fmt: skip

__getattr__ = _refuser("lathe.ir", globals())
