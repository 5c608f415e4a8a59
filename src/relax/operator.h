// What an operator is: everything the compiler must know about it, in one constant.
#pragma once

#include <span>

#include "relax/expr.h"
#include "support/result.h"
#include "te/tensor.h"

namespace lathe::relax {

using support::Result;

// How an operator's loops relate to its neighbours'; later ones fuse less.
enum class FusionKind : uint8_t {
  elementwise,  // output element (i…) from input element (i…)
  broadcast,    // output element (i…) from input elements at a subset of i…
  injective,    // output element from input elements at any function of its index
  reduction,    // many input elements to one
  product,      // matrix product, convolution: a reduction that takes elementwise epilogues
  opaque,       // never fused
};

// Declares one input. Names are the ones that diagnostics use.
struct Input {
  std::string_view name;
  enum Presence : uint8_t { required, optional, variadic } presence = required;
  enum Sort : uint8_t { tensor, shape, scalar } sort = tensor;  // a ShapeExpr or PrimValue argument
};

// What a type rule took for true of symbolic extents: that `actual` is `expected` when the model runs.
struct Assumption {
  ir::Expr actual, expected;
};
using Assumptions = std::vector<Assumption>;

// What a type rule sees: the arguments (each with struct info; null for an absent optional one) and the attributes.
struct InferContext {
  const Operator& op;
  const std::vector<Expr>& args;
  const AttributesNode* attributes;
  std::span<const StructInfo> struct_info_args = {};
  Assumptions* assumptions = nullptr;  // where the rule notes its own, if someone asks

  const TensorStructInfo* tensor(size_t i) const { return i < args.size() ? as_tensor(args[i]) : nullptr; }
  template <class T>
  const T& attrs() const {
    return static_cast<const T&>(*attributes);
  }
};
using Infer = std::function<Result<StructInfo>(const InferContext&)>;

// Meaning 1: a tensor expression. Gets the tensors of the arguments (a ShapeExpr or PrimValue argument has none: its
// values are read from `call`; an absent optional one is nothing) and gives the outputs' tensors.
struct LowerContext {
  const Call& call;
  const AttributesNode* attributes;
  std::vector<std::optional<te::Tensor>> tensors;  // by argument

  const te::Tensor& tensor(size_t i) const { return tensors.at(i).value(); }
  const TensorStructInfo& output(size_t i = 0) const;  // declared struct info of output i
  template <class T>
  const T& attrs() const {
    return static_cast<const T&>(*attributes);
  }
};
using TeExpression = std::function<std::vector<te::Tensor>(const LowerContext&)>;
// Meaning 2: a tensor program written as statements: gives the whole function (inputs, then outputs).
using TirBuilder = std::function<tir::Function(const LowerContext&)>;
// Meaning 3: other operators. Emits them and gives the result.
class BlockBuilder;
using Composite = std::function<Result<Expr>(BlockBuilder&, const Call&)>;
// Meaning 4: a kernel of the runtime, by name, and the call's attributes as the kernel reads them.
struct RuntimeKernel {
  std::string_view name;
  std::string (*attributes)(const Call& call) = nullptr;
};
using Meaning = std::variant<TeExpression, TirBuilder, Composite, RuntimeKernel>;

// The adjoints of the arguments, given the call and the adjoint of its output; null for one without a gradient.
using Gradient = std::function<Result<std::vector<Expr>>(BlockBuilder&, const Call&, const Expr& output_adjoint)>;

// The class of an operator's attributes: names, defaults, and how to make one from named values (the script's
// keyword arguments).
struct AttributesClass {
  std::string_view name;
  AttributesRef (*defaults)();
  Result<AttributesRef> (*from_values)(const ir::Value::Map& values);
};

struct Operator {
  std::string_view name;  // "nn.softmax": printed R.nn.softmax
  std::vector<Input> inputs;
  const AttributesClass* attributes = nullptr;  // null: none
  Infer infer;
  Meaning meaning;
  FusionKind fusion = FusionKind::opaque;
  bool is_view = false;        // the result is the first argument's memory under another shape: never computed
  bool grows_weights = false;  // weights in a larger form: folded whatever they come to, as someone asked for it
  Gradient gradient;           // empty: none
  std::string_view reference;  // the independent reference, as a NumPy/SciPy expression over the inputs' names
};

// The operators known to a compilation, by name. Built once from ops.def; users' operators are added to a copy.
class OperatorTable {
 public:
  void add(const Operator& op);
  const Operator* find(std::string_view name) const;
  const std::vector<const Operator*>& all() const { return rows_; }

 private:
  std::vector<const Operator*> rows_;
  std::unordered_map<std::string_view, const Operator*> index_;
};

Expr op_ref(const Operator& op);
// The operator a call names, or null when the callee is something else.
const Operator* callee_operator(const Call& call);
// A call with its struct info computed by the operator's rule; a failure carries `origin`'s place.
Result<Expr> make_call(const Operator& op, std::vector<Expr> args, AttributesRef attributes = {},
                       ir::Origin origin = {}, std::vector<StructInfo> struct_info_args = {});

}  // namespace lathe::relax
