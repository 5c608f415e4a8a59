// Relax: functions over whole tensors in let-bound (A-normal) form. The meaning of each kind stands beside it.
//
// Every expression carries its struct info (what is known of its value), computed when it is emitted and outside
// structural equality except where a variable is defined. Scalars inside shapes are ir expressions of dtype int64.
#pragma once

#include "ir/build.h"
#include "ir/function.h"
#include "ir/tensor_data.h"

namespace lathe::relax {

struct Operator;  // relax/operator.h

using ir::Attributes;
using ir::DType;
using ir::field;
using ir::make;
using ir::NodeRef;
using ir::Ref;
using ir::Role;
using ir::Value;

// ---- struct info: what is known of a value ----

struct StructInfoNode : ir::Node {
  static constexpr std::string_view family = "struct_info";
  using family_type = StructInfoNode;
};
using StructInfo = Ref<StructInfoNode>;

// Any value.
struct ObjectStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "ObjectStructInfo";
  static constexpr auto fields() { return std::tuple<>{}; }
};

// A scalar; `value` when it is known symbolically.
struct PrimStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "PrimStructInfo";
  DType dtype;
  ir::Expr value;  // may be null
  static constexpr auto fields() {
    return std::tuple{field("dtype", &PrimStructInfo::dtype), optional_field("value", &PrimStructInfo::value)};
  }
};

// A shape; its values when known, else its rank (-1: unknown).
struct ShapeStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "ShapeStructInfo";
  std::optional<std::vector<ir::Expr>> values;
  int64_t ndim = -1;
  static constexpr auto fields() {
    return std::tuple{field("values", &ShapeStructInfo::values), field("ndim", &ShapeStructInfo::ndim)};
  }
  void derive() {
    if (values) ndim = static_cast<int64_t>(values->size());
  }
};

// A tensor: symbolic shape when known, else rank (-1: unknown); dtype void when unknown.
struct TensorStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "TensorStructInfo";
  std::optional<std::vector<ir::Expr>> shape;
  DType dtype;
  int64_t ndim = -1;
  static constexpr auto fields() {
    return std::tuple{field("shape", &TensorStructInfo::shape), field("dtype", &TensorStructInfo::dtype),
                      field("ndim", &TensorStructInfo::ndim)};
  }
  void derive() {
    if (shape) ndim = static_cast<int64_t>(shape->size());
  }
};

struct TupleStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "TupleStructInfo";
  std::vector<StructInfo> items;
  static constexpr auto fields() { return std::tuple{field("items", &TupleStructInfo::items)}; }
};

// Values of one type in order, any number of them.
struct SequenceStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "SequenceStructInfo";
  StructInfo element;
  static constexpr auto fields() { return std::tuple{field("element", &SequenceStructInfo::element)}; }
};

// A value of that type, or none.
struct OptionalStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "OptionalStructInfo";
  StructInfo element;
  static constexpr auto fields() { return std::tuple{field("element", &OptionalStructInfo::element)}; }
};

struct FuncStructInfo : StructInfoNode {
  static constexpr std::string_view kind_name = "FuncStructInfo";
  std::optional<std::vector<StructInfo>> params;  // nothing: any
  StructInfo result;
  bool pure = true;
  static constexpr auto fields() {
    return std::tuple{field("params", &FuncStructInfo::params, Role::define),
                      optional_field("result", &FuncStructInfo::result), field("pure", &FuncStructInfo::pure)};
  }
};

// ---- expressions ----

struct ExprNode : ir::Node {
  static constexpr std::string_view family = "relax_expr";
  using family_type = ExprNode;
  StructInfo struct_info;  // null before it is computed
};
using Expr = Ref<ExprNode>;

// A variable; a dataflow variable lives inside its dataflow block only.
struct VarNode : ExprNode {
  static constexpr std::string_view kind_name = "Var";
  static constexpr bool has_identity = true;
  std::string name;
  bool is_dataflow = false;
  static constexpr auto fields() {
    return std::tuple{field("name", &VarNode::name, Role::ignore), optional_field("struct_info", &VarNode::struct_info),
                      field("is_dataflow", &VarNode::is_dataflow)};
  }
};
using Var = Ref<VarNode>;

// A constant tensor.
struct Constant : ExprNode {
  static constexpr std::string_view kind_name = "Constant";
  ir::TensorData data;
  static constexpr auto fields() { return std::tuple{field("data", &Constant::data)}; }
  void derive();
};

struct Tuple : ExprNode {
  static constexpr std::string_view kind_name = "Tuple";
  std::vector<Expr> items;
  static constexpr auto fields() { return std::tuple{field("items", &Tuple::items)}; }
};

struct TupleGetItem : ExprNode {
  static constexpr std::string_view kind_name = "TupleGetItem";
  Expr tuple;
  int64_t index = 0;
  static constexpr auto fields() {
    return std::tuple{field("tuple", &TupleGetItem::tuple), field("index", &TupleGetItem::index)};
  }
};

// A shape as a value.
struct ShapeExpr : ExprNode {
  static constexpr std::string_view kind_name = "ShapeExpr";
  std::vector<ir::Expr> values;
  static constexpr auto fields() { return std::tuple{field("values", &ShapeExpr::values)}; }
  void derive();
};

// A scalar as a value.
struct PrimValue : ExprNode {
  static constexpr std::string_view kind_name = "PrimValue";
  ir::Expr value;
  static constexpr auto fields() { return std::tuple{field("value", &PrimValue::value)}; }
  void derive();
};

struct StringImm : ExprNode {
  static constexpr std::string_view kind_name = "StringImm";
  std::string value;
  static constexpr auto fields() { return std::tuple{field("value", &StringImm::value)}; }
};

struct DataTypeImm : ExprNode {
  static constexpr std::string_view kind_name = "DataTypeImm";
  DType value;
  static constexpr auto fields() { return std::tuple{field("value", &DataTypeImm::value)}; }
};

// A function of the module, by name.
struct GlobalVar : ExprNode {
  static constexpr std::string_view kind_name = "GlobalVar";
  std::string name;
  static constexpr auto fields() { return std::tuple{field("name", &GlobalVar::name)}; }
};

// A runtime function, by name.
struct ExternFunc : ExprNode {
  static constexpr std::string_view kind_name = "ExternFunc";
  std::string name;
  static constexpr auto fields() { return std::tuple{field("name", &ExternFunc::name)}; }
};

// An operator as a callee: a row of the operator table. Made by `op_ref` (relax/operator.h).
struct OpRef : ExprNode {
  static constexpr std::string_view kind_name = "Op";
  std::string name;              // the row's
  const Operator* op = nullptr;  // the row itself; names are unique in a table, so equality goes by name
  static constexpr auto fields() { return std::tuple{field("name", &OpRef::name)}; }
};

// The typed attributes of an operator's call: a struct of fields (open family).
struct AttributesNode : ir::Node {
  static constexpr std::string_view family = "attributes";
  using family_type = AttributesNode;
};
using AttributesRef = Ref<AttributesNode>;

// callee(args…). The callee is an OpRef, GlobalVar, ExternFunc, or a variable holding a function. The bridge to tir is
// the operator `call_tir`: args are the GlobalVar, a Tuple of tensors and an optional ShapeExpr of scalars;
// `struct_info_args` holds the outputs' struct info.
struct Call : ExprNode {
  static constexpr std::string_view kind_name = "Call";
  Expr callee;
  std::vector<Expr> args;
  AttributesRef attributes;  // null where the operator has none
  std::vector<StructInfo> struct_info_args;
  static constexpr auto fields() {
    return std::tuple{field("callee", &Call::callee), field("args", &Call::args),
                      optional_field("attributes", &Call::attributes),
                      field("struct_info_args", &Call::struct_info_args)};
  }
};

struct BindingNode : ir::Node {
  static constexpr std::string_view family = "binding";
  using family_type = BindingNode;
};
using Binding = Ref<BindingNode>;

// var = value.
struct VarBinding : BindingNode {
  static constexpr std::string_view kind_name = "VarBinding";
  Var var;
  Expr value;
  static constexpr auto fields() {
    return std::tuple{field("value", &VarBinding::value), field("var", &VarBinding::var, Role::define)};
  }
};

// var = value, checked at run time against `struct_info`; symbolic dimensions first met there are bound.
struct MatchCast : BindingNode {
  static constexpr std::string_view kind_name = "MatchCast";
  Var var;
  Expr value;
  StructInfo struct_info;
  static constexpr auto fields() {
    return std::tuple{field("value", &MatchCast::value), field("struct_info", &MatchCast::struct_info, Role::define),
                      field("var", &MatchCast::var, Role::define)};
  }
};

// Bindings in order. A dataflow block is pure and has no control flow.
struct BindingBlockNode : ir::Node {
  static constexpr std::string_view family = "binding_block";
  using family_type = BindingBlockNode;
  static constexpr std::string_view kind_name = "BindingBlock";
  std::vector<Binding> bindings;
  bool is_dataflow = false;
  static constexpr auto fields() {
    return std::tuple{field("bindings", &BindingBlockNode::bindings),
                      field("is_dataflow", &BindingBlockNode::is_dataflow)};
  }
};
using BindingBlock = Ref<BindingBlockNode>;

// The blocks in order, then `body`, a leaf expression.
struct SeqExpr : ExprNode {
  static constexpr std::string_view kind_name = "SeqExpr";
  std::vector<BindingBlock> blocks;
  Expr body;
  static constexpr auto fields() {
    return std::tuple{field("blocks", &SeqExpr::blocks), field("body", &SeqExpr::body)};
  }
};

// The value of the branch that the scalar bool tensor `condition` chooses.
struct If : ExprNode {
  static constexpr std::string_view kind_name = "If";
  Expr condition;
  Expr true_branch, false_branch;  // SeqExpr
  static constexpr auto fields() {
    return std::tuple{field("condition", &If::condition), field("true_branch", &If::true_branch),
                      field("false_branch", &If::false_branch)};
  }
};

}  // namespace lathe::relax

// The kinds of struct info, one row each.
// clang-format off
#define LATHE_STRUCT_INFO_KINDS(X)                                                                   \
  X(lathe::relax::ObjectStructInfo)                                                                  \
  X(lathe::relax::PrimStructInfo) X(lathe::relax::ShapeStructInfo) X(lathe::relax::TensorStructInfo) \
      X(lathe::relax::TupleStructInfo) X(lathe::relax::SequenceStructInfo) X(lathe::relax::OptionalStructInfo) \
          X(lathe::relax::FuncStructInfo)
// clang-format on
template <>
struct lathe::ir::FamilyKinds<lathe::relax::StructInfoNode> {
  using type = KindsAfter<void LATHE_STRUCT_INFO_KINDS(LATHE_KIND)>;
};
LATHE_STRUCT_INFO_KINDS(LATHE_DECLARE_KIND)
// The kinds of expressions, one row each.
// clang-format off
#define LATHE_RELAX_KINDS(X)                                                                                        \
  X(lathe::relax::VarNode)                                                                                          \
  X(lathe::relax::Constant) X(lathe::relax::Tuple) X(lathe::relax::TupleGetItem) X(lathe::relax::ShapeExpr)         \
      X(lathe::relax::PrimValue) X(lathe::relax::StringImm) X(lathe::relax::DataTypeImm) X(lathe::relax::GlobalVar) \
          X(lathe::relax::ExternFunc) X(lathe::relax::OpRef) X(lathe::relax::Call) X(lathe::relax::SeqExpr)         \
              X(lathe::relax::If)
// clang-format on
template <>
struct lathe::ir::FamilyKinds<lathe::relax::ExprNode> {
  using type = KindsAfter<void LATHE_RELAX_KINDS(LATHE_KIND)>;
};
LATHE_RELAX_KINDS(LATHE_DECLARE_KIND)
// The kinds of bindings, one row each.
// clang-format off
#define LATHE_BINDING_KINDS(X) X(lathe::relax::VarBinding) X(lathe::relax::MatchCast)
// clang-format on
template <>
struct lathe::ir::FamilyKinds<lathe::relax::BindingNode> {
  using type = KindsAfter<void LATHE_BINDING_KINDS(LATHE_KIND)>;
};
LATHE_BINDING_KINDS(LATHE_DECLARE_KIND)

namespace lathe::relax {

// A graph-level function. `body` is a SeqExpr.
struct FunctionNode : ir::FunctionNode {
  static constexpr std::string_view kind_name = "Function";
  std::vector<Var> params;
  Expr body;
  StructInfo ret_struct_info;
  bool is_pure = true;
  static constexpr auto fields() {
    return std::tuple{field("params", &FunctionNode::params, Role::define), field("body", &FunctionNode::body),
                      optional_field("ret_struct_info", &FunctionNode::ret_struct_info),
                      field("is_pure", &FunctionNode::is_pure), field("attrs", &FunctionNode::attrs)};
  }
};
using Function = Ref<FunctionNode>;

// The struct info of a tensor of that shape, of that rank, of a tuple.
StructInfo tensor_info(std::vector<ir::Expr> shape, DType dtype);
StructInfo tensor_info(const std::vector<int64_t>& shape, DType dtype);
StructInfo tensor_info_of_rank(int64_t ndim, DType dtype);
Var relax_var(std::string name, StructInfo info, bool is_dataflow = false);
Expr constant(ir::TensorData data);
// The expression's struct info as a tensor's, or null.
const TensorStructInfo* as_tensor(const Expr& e);
// A copy of `e` with `info` (in place where `e` is uniquely owned).
Expr with_struct_info(Expr e, StructInfo info);
// A tuple of expressions that have their struct info.
Expr tuple_of(std::vector<Expr> items);

}  // namespace lathe::relax

LATHE_DECLARE_KIND(lathe::relax::BindingBlockNode)
LATHE_DECLARE_KIND(lathe::relax::FunctionNode)
