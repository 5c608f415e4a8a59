// Scalar expressions, shared by both IRs. The meaning of each kind stands beside it.
//
// Integers in index positions (subscripts, extents, shapes) are mathematical integers; integers as values wrap at
// their width. Floats are IEEE. Operands of a binary kind have one dtype; vectors work lane by lane.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/fields.h"
#include "ir/intrinsic.h"

namespace lathe::ir {

struct ExprNode : Node {
  static constexpr std::string_view family = "expr";
  using family_type = ExprNode;
  DType dtype;
};
using Expr = Ref<ExprNode>;

// The half-open interval [min, min + extent).
struct Range {
  Expr min, extent;
  static constexpr auto fields() { return std::tuple{field("min", &Range::min), field("extent", &Range::extent)}; }
};

// A variable. Identity is the node's; the name is only for people. A size variable is known to be at least zero.
struct VarNode : ExprNode {
  static constexpr std::string_view kind_name = "Var";
  static constexpr bool has_identity = true;
  std::string name;
  bool is_size = false;
  static constexpr auto fields() {
    return std::tuple{field("name", &VarNode::name, Role::ignore), field("dtype", &VarNode::dtype),
                      field("is_size", &VarNode::is_size)};
  }
};
using Var = Ref<VarNode>;

// An integer or bool constant; uint64 beyond int64 is held as its bit pattern.
struct IntImm : ExprNode {
  static constexpr std::string_view kind_name = "IntImm";
  int64_t value = 0;
  static constexpr auto fields() { return std::tuple{field("dtype", &IntImm::dtype), field("value", &IntImm::value)}; }
};

// A floating-point constant, already rounded to its dtype.
struct FloatImm : ExprNode {
  static constexpr std::string_view kind_name = "FloatImm";
  double value = 0;
  static constexpr auto fields() {
    return std::tuple{field("dtype", &FloatImm::dtype), field("value", &FloatImm::value)};
  }
};

struct StringImm : ExprNode {
  static constexpr std::string_view kind_name = "StringImm";
  std::string value;
  static constexpr auto fields() { return std::tuple{field("value", &StringImm::value)}; }
  void derive() { dtype = DType::handle(); }
};

// A function of the module, by name. The callee of `call_tir` and of calls between functions.
struct GlobalVar : ExprNode {
  static constexpr std::string_view kind_name = "GlobalVar";
  std::string name;
  static constexpr auto fields() { return std::tuple{field("name", &GlobalVar::name)}; }
  void derive() { dtype = DType::handle(); }
};

// `value` converted. Float to integer truncates toward zero (out of range: unspecified, never undefined behaviour in
// our generated code); to bool: value != 0; between integers: wraps; to a narrower float: round to nearest even.
struct Cast : ExprNode {
  static constexpr std::string_view kind_name = "Cast";
  Expr value;
  static constexpr auto fields() { return std::tuple{field("dtype", &Cast::dtype), field("value", &Cast::value)}; }
};

// Declares a binary kind whose operands have one dtype; RESULT is the result's.
#define LATHE_BINARY(Kind, RESULT)                                                                    \
  struct Kind : ExprNode {                                                                            \
    static constexpr std::string_view kind_name = #Kind;                                              \
    Expr a, b;                                                                                        \
    static constexpr auto fields() { return std::tuple{field("a", &Kind::a), field("b", &Kind::b)}; } \
    void derive() { dtype = RESULT; }                                                                 \
  }
// a + b, a - b, a * b. As an index exact; as a value integers wrap.
LATHE_BINARY(Add, a->dtype);
LATHE_BINARY(Sub, a->dtype);
LATHE_BINARY(Mul, a->dtype);
// a / b of floats; of integers the quotient truncated toward zero (C's).
LATHE_BINARY(Div, a->dtype);
// The remainder that belongs to Div: has the sign of a (C's %, and fmod for floats).
LATHE_BINARY(Mod, a->dtype);
// The quotient rounded down, and the remainder that belongs to it (has the sign of b). Python's // and %.
LATHE_BINARY(FloorDiv, a->dtype);
LATHE_BINARY(FloorMod, a->dtype);
// The smaller and the larger. For floats a NaN operand gives NaN, and of -0 and +0 either may come out.
LATHE_BINARY(Min, a->dtype);
LATHE_BINARY(Max, a->dtype);
// Comparisons: bool. Ordered for floats: with a NaN only NE holds.
LATHE_BINARY(EQ, DType::boolean(a->dtype.lanes));
LATHE_BINARY(NE, DType::boolean(a->dtype.lanes));
LATHE_BINARY(LT, DType::boolean(a->dtype.lanes));
LATHE_BINARY(LE, DType::boolean(a->dtype.lanes));
LATHE_BINARY(GT, DType::boolean(a->dtype.lanes));
LATHE_BINARY(GE, DType::boolean(a->dtype.lanes));
// Logical operations on bool; both operands may be evaluated.
LATHE_BINARY(And, DType::boolean(a->dtype.lanes));
LATHE_BINARY(Or, DType::boolean(a->dtype.lanes));
#undef LATHE_BINARY

struct Not : ExprNode {
  static constexpr std::string_view kind_name = "Not";
  Expr a;
  static constexpr auto fields() { return std::tuple{field("a", &Not::a)}; }
  void derive() { dtype = DType::boolean(a->dtype.lanes); }
};

// condition ? true_value : false_value, lane by lane; both values may be evaluated, so neither may trap. For a value
// that must not be evaluated (a load out of bounds) use the intrinsic if_then_else.
struct Select : ExprNode {
  static constexpr std::string_view kind_name = "Select";
  Expr condition, true_value, false_value;
  static constexpr auto fields() {
    return std::tuple{field("condition", &Select::condition), field("true_value", &Select::true_value),
                      field("false_value", &Select::false_value)};
  }
  void derive() { dtype = true_value->dtype; }
};

// The vector base, base + stride, …, base + (lanes - 1) * stride.
struct Ramp : ExprNode {
  static constexpr std::string_view kind_name = "Ramp";
  Expr base, stride;
  int64_t lanes = 1;
  static constexpr auto fields() {
    return std::tuple{field("base", &Ramp::base), field("stride", &Ramp::stride), field("lanes", &Ramp::lanes)};
  }
  void derive() { dtype = base->dtype.with_lanes(static_cast<int>(lanes)); }
};

// The scalar `value` in every lane.
struct Broadcast : ExprNode {
  static constexpr std::string_view kind_name = "Broadcast";
  Expr value;
  int64_t lanes = 1;
  static constexpr auto fields() {
    return std::tuple{field("value", &Broadcast::value), field("lanes", &Broadcast::lanes)};
  }
  void derive() { dtype = value->dtype.with_lanes(static_cast<int>(lanes)); }
};

// Lanes chosen by constant indices from the concatenation of `vectors`.
struct Shuffle : ExprNode {
  static constexpr std::string_view kind_name = "Shuffle";
  std::vector<Expr> vectors;
  std::vector<int64_t> indices;
  static constexpr auto fields() {
    return std::tuple{field("vectors", &Shuffle::vectors), field("indices", &Shuffle::indices)};
  }
  void derive() { dtype = vectors.at(0)->dtype.with_lanes(static_cast<int>(indices.size())); }
};

// `body` with `var` bound to `value`.
struct Let : ExprNode {
  static constexpr std::string_view kind_name = "Let";
  Var var;
  Expr value, body;
  static constexpr auto fields() {
    return std::tuple{field("var", &Let::var, Role::define), field("value", &Let::value), field("body", &Let::body)};
  }
  void derive() { dtype = body->dtype; }
};

// A region of memory with a shape. `data` is its address; element (i, j, …) lies at elem_offset + sum of index times
// stride, in elements; no strides means compact row-major. Scopes: "global", "local", "register" (see DESIGN 9), ….
struct BufferNode : Node {
  static constexpr std::string_view family = "buffer";
  using family_type = BufferNode;
  static constexpr std::string_view kind_name = "Buffer";
  static constexpr bool has_identity = true;
  std::string name;
  Var data;
  DType dtype;
  std::vector<Expr> shape;
  std::vector<Expr> strides;  // empty, or one a dimension
  Expr elem_offset;           // null: zero
  std::string scope = "global";
  int64_t data_alignment = 64;  // bytes
  int64_t offset_factor = 0;    // elem_offset is a multiple of this; 0: no promise
  std::vector<int64_t> axis_separators;
  static constexpr auto fields() {
    return std::tuple{field("name", &BufferNode::name, Role::ignore),
                      optional_field("data", &BufferNode::data),
                      field("dtype", &BufferNode::dtype),
                      field("shape", &BufferNode::shape),
                      field("strides", &BufferNode::strides),
                      optional_field("elem_offset", &BufferNode::elem_offset),
                      field("scope", &BufferNode::scope),
                      field("data_alignment", &BufferNode::data_alignment),
                      field("offset_factor", &BufferNode::offset_factor),
                      field("axis_separators", &BufferNode::axis_separators)};
  }
};
using Buffer = Ref<BufferNode>;

// The element at `indices`. A vector last index loads a vector. With a predicate (bool lanes), masked-off lanes are
// not read and are zero.
struct BufferLoad : ExprNode {
  static constexpr std::string_view kind_name = "BufferLoad";
  Buffer buffer;
  std::vector<Expr> indices;
  Expr predicate;  // null: every lane
  static constexpr auto fields() {
    return std::tuple{field("buffer", &BufferLoad::buffer), field("indices", &BufferLoad::indices),
                      optional_field("predicate", &BufferLoad::predicate)};
  }
  void derive() {
    dtype = buffer->dtype;
    if (!indices.empty() && indices.back()->dtype.is_vector())
      dtype = dtype.with_lanes(dtype.lanes * indices.back()->dtype.lanes);
  }
};

// A call of an intrinsic (a row of ir/intrinsic.h). The rows call_extern, call_pure_extern and call_packed take the
// callee's name as a StringImm first; call_function takes a GlobalVar first. A buffer is given to a function by the
// address of an element, to call_packed by tvm_stack_make_array.
struct Call : ExprNode {
  static constexpr std::string_view kind_name = "Call";
  const Intrinsic* op = nullptr;
  std::vector<Expr> args;
  static constexpr auto fields() {
    return std::tuple{field("dtype", &Call::dtype), field("op", &Call::op), field("args", &Call::args)};
  }
};

enum class IterType : uint8_t { spatial, reduce, scan, opaque, thread_index };

// A variable that ranges over a domain, and what its iterations mean.
struct IterVarNode : Node {
  static constexpr std::string_view family = "iter_var";
  using family_type = IterVarNode;
  static constexpr std::string_view kind_name = "IterVar";
  Range dom;
  Var var;
  IterType type = IterType::spatial;
  std::string thread_tag;
  static constexpr auto fields() {
    return std::tuple{field("dom", &IterVarNode::dom), field("var", &IterVarNode::var, Role::define),
                      field("type", &IterVarNode::type), field("thread_tag", &IterVarNode::thread_tag)};
  }
};
using IterVar = Ref<IterVarNode>;

// How a reduction combines: (lhs, rhs) -> result, from `identity`. Several values at once for argmax and the like.
struct CommReducerNode : Node {
  static constexpr std::string_view family = "comm_reducer";
  using family_type = CommReducerNode;
  static constexpr std::string_view kind_name = "CommReducer";
  std::vector<Var> lhs, rhs;
  std::vector<Expr> result, identity;
  static constexpr auto fields() {
    return std::tuple{field("lhs", &CommReducerNode::lhs, Role::define),
                      field("rhs", &CommReducerNode::rhs, Role::define), field("result", &CommReducerNode::result),
                      field("identity", &CommReducerNode::identity)};
  }
};
using CommReducer = Ref<CommReducerNode>;

// The reduction of `sources` over `axis`; result number `value_index` of the combiner. In tensor expressions only.
struct Reduce : ExprNode {
  static constexpr std::string_view kind_name = "Reduce";
  CommReducer combiner;
  std::vector<IterVar> axis;
  std::vector<Expr> sources;
  Expr condition;  // null: always
  int64_t value_index = 0;
  std::vector<Expr> init;  // empty: the combiner's identity
  static constexpr auto fields() {
    return std::tuple{field("combiner", &Reduce::combiner),       field("axis", &Reduce::axis),
                      field("sources", &Reduce::sources),         optional_field("condition", &Reduce::condition),
                      field("value_index", &Reduce::value_index), field("init", &Reduce::init)};
  }
  void derive() { dtype = sources.at(static_cast<size_t>(value_index))->dtype; }
};

}  // namespace lathe::ir

// The kinds of expressions, one row each.
// clang-format off
#define LATHE_EXPR_KINDS(X)                                                                                            \
  X(lathe::ir::VarNode)                                                                                                \
  X(lathe::ir::IntImm) X(lathe::ir::FloatImm) X(lathe::ir::StringImm) X(lathe::ir::GlobalVar) X(lathe::ir::Cast)       \
      X(lathe::ir::Add) X(lathe::ir::Sub) X(lathe::ir::Mul) X(lathe::ir::Div) X(lathe::ir::Mod) X(lathe::ir::FloorDiv) \
          X(lathe::ir::FloorMod) X(lathe::ir::Min) X(lathe::ir::Max) X(lathe::ir::EQ) X(lathe::ir::NE)                 \
              X(lathe::ir::LT) X(lathe::ir::LE) X(lathe::ir::GT) X(lathe::ir::GE) X(lathe::ir::And) X(lathe::ir::Or)   \
                  X(lathe::ir::Not) X(lathe::ir::Select) X(lathe::ir::Ramp) X(lathe::ir::Broadcast)                    \
                      X(lathe::ir::Shuffle) X(lathe::ir::Let) X(lathe::ir::BufferLoad) X(lathe::ir::Call)              \
                          X(lathe::ir::Reduce)
// clang-format on
template <>
struct lathe::ir::FamilyKinds<lathe::ir::ExprNode> {
  using type = KindsAfter<void LATHE_EXPR_KINDS(LATHE_KIND)>;
};
// Nodes beside the expressions.
// clang-format off
#define LATHE_EXPR_PARTS(X) X(lathe::ir::BufferNode) X(lathe::ir::IterVarNode) X(lathe::ir::CommReducerNode)
// clang-format on
LATHE_EXPR_KINDS(LATHE_DECLARE_KIND)
LATHE_EXPR_PARTS(LATHE_DECLARE_KIND)
