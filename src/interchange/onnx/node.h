// What the conversion of one ONNX node sees: its inputs as relax expressions or known integers, its attributes, and
// where its outputs go. Converters throw a DiagnosticError for what they refuse; the importer adds place and notes.
#pragma once

#include "interchange/onnx/attributes.h"
#include "interchange/onnx/graph_value.h"
#include "interchange/onnx/known_sizes.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "relax/assert_op.h"
#include "relax/block_builder.h"

namespace lathe::onnx {

using ir::DType;
using relax::Expr;
using relax::Shape;

// Converts graphs that nodes hold; what they read from around them is found by name.
class NestedGraphs {
 public:
  virtual ~NestedGraphs() = default;
  // Emits the graph's nodes where the builder stands, its inputs being `inputs`, and gives its outputs. `name` is the
  // attribute's. Throws where a node of it is refused. The graph is a function by itself.
  virtual std::vector<GraphValue> convert(const schema::GraphProto& graph, const std::string& name,
                                          std::vector<GraphValue> inputs) = 0;
  // The same of the branch that is always taken: its nodes are ones of the graph around.
  virtual std::vector<GraphValue> convert_inline(const schema::GraphProto& graph, const std::string& name) = 0;
  // Emits again, where the builder stands, the nodes around that lead from values of these names to the one called
  // `result`, with `values` in their place. Throws where there is no such value, or a node of it is refused.
  virtual GraphValue convert_again(const std::vector<std::string>& names, std::vector<GraphValue> values,
                                   const std::string& result) = 0;

  // ---- branches that give different numbers of dimensions ----
  // All that comes after such a node is converted once for each branch, as that branch's end: the rest of the graph,
  // and of the graphs around it, up to the one that is a function by itself (the model's, a loop's body).

  // A branch by itself: what comes after it is not converted with it.
  virtual std::vector<GraphValue> convert_alone(const schema::GraphProto& graph, const std::string& name) = 0;
  // The branch and all that comes after it; gives that graph's outputs.
  virtual std::vector<Expr> convert_to_end(const schema::GraphProto& graph, const std::string& name) = 0;
  // Returns where this node may be converted so. In a branch by itself it throws RanksDiffer, for the node of that
  // branch; elsewhere, in what cannot be taken apart, it refuses the node because of `why`.
  virtual void expect_end(const std::string& why) = 0;
  // These are the outputs of the graph that convert_to_end reaches; nothing more of it is converted.
  [[noreturn]] virtual void end_with(std::vector<Expr> results) = 0;
};

// No user's error yet: the branches of an If give different numbers of dimensions.
struct RanksDiffer {
  std::string why;
};

class NodeImport {
 public:
  NodeImport(relax::BlockBuilder& builder, NodeAttributes& attributes, std::vector<GraphValue*> inputs,
             std::vector<std::string> outputs, int64_t version, support::Place place, NestedGraphs* graphs)
      : attributes(attributes),
        version(version),
        graphs_(graphs),
        builder_(builder),
        inputs_(std::move(inputs)),
        output_names_(std::move(outputs)),
        results_(output_names_.size()),
        place_(std::move(place)) {}

  // The same node, emitting elsewhere.
  NodeImport(relax::BlockBuilder& builder, NodeAttributes& attributes, const NodeImport& other)
      : attributes(attributes),
        version(other.version),
        builder_(builder),
        inputs_(other.inputs_),
        output_names_(other.output_names_),
        results_(other.output_names_.size()),
        place_(other.place_),
        declared_ranks_(other.declared_ranks_),
        input_names_(other.input_names_),
        sizes_(other.sizes_) {}

  NodeAttributes& attributes;
  const int64_t version;  // the operator's: the newest of its row's that the model's opset reaches

  // ---- inputs ----
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  Expr input(size_t i);
  GraphValue& value(size_t i);
  const Shape& shape(size_t i);
  DType dtype(size_t i);
  int64_t rank(size_t i);

  // ---- integers ----
  // Those of the input when they are known without asking at run time, else null.
  const Integers* known(size_t i);
  // Those of the input: known, or read from the tensor when the model runs. The count is always known.
  Integers integers(size_t i);
  // The same of a vector that must have `count` elements, which the run checks where its length is not known.
  Integers integers(size_t i, int64_t count);
  // Of a vector whose length only the run may tell, at most `most`: that many, the given ones first (or, with
  // `at_end`, last), and `filler` for those that are not there. `length` is how many are.
  struct OpenIntegers {
    Integers values;
    ir::Expr length;
  };
  OpenIntegers integers_up_to(size_t i, int64_t most, int64_t filler, bool at_end = false);
  // Whether the run alone tells how many elements the vector has.
  bool has_open_length(size_t i);
  // The same of a vector that any number fits: as many as `count` says, where that is known and the length is not.
  Integers integers_or(size_t i, std::optional<int64_t> count);
  // Symbols for the elements of an integer tensor, bound when the model runs.
  Integers read_at_run_time(const Expr& tensor, int64_t count);
  // The same tensor, of an extent that only the run could tell and that must be that one.
  Expr with_extent(Expr tensor, int64_t axis, int64_t extent);
  // The extent as a float64 scalar, known or when the model runs.
  Expr extent_as_float(const ir::Expr& extent);
  // The model fails when it runs unless the scalar tensor is that integer.
  void expect_at_run_time(const Expr& scalar, int64_t value);
  // Those of the input, which must be constants; else a diagnostic saying that `purpose` must be known.
  std::vector<int64_t> constants(size_t i, std::string_view purpose);
  std::vector<int64_t> integer_dims(size_t i);  // the shape of an input whose integers are known
  bool all_known();                             // of every input that is there

  // ---- what the run must find, or the model fails and the message tells of the node and its operands ----
  void expect(const ir::Expr& condition, const relax::Message& message);
  // What the operands are and where they come from, as the notes of a refusal say it.
  relax::Message operands() const;
  // Each integer of the input is in [low, high); these are one number each, or one for each place of the last
  // dimension. "'at' holds 9 at [0], but indices into axis 0 of 'x' are in [-3, 3)". Any element may be `besides`.
  void expect_elements(size_t i, const Integers& low, const Integers& high, const relax::Message& takes,
                       std::optional<int64_t> besides = {});
  // The input indexes what of the data (input 0) has these extents; negative indices count from the end.
  void expect_indices(size_t i, const Integers& extents, std::string_view what);
  // The same with one bound of integers that the input gave; `takes` is what the operator takes.
  void expect_at_least(size_t i, const Integers& values, int64_t least, std::string_view takes);
  // Axes of a tensor of that rank, no two of them one axis; those from `count` on (where it is given) are none.
  void expect_axes(size_t i, const Integers& axes, int64_t rank, const ir::Expr& count = {});
  void expect_no_zero(size_t i, std::string_view why);
  std::string name_of(size_t i) const;  // of the value that the input is, in quotes
  void name_inputs(const std::vector<std::string>* names) { input_names_ = names; }

  // ---- what is known of sizes ----
  const SymbolBounds& bounds() const { return *sizes_.bounds; }
  SameSizes& same_sizes() { return *sizes_.same; }
  void know_sizes(const KnownSizes& sizes) { sizes_ = sizes; }

  // ---- emitting ----
  Expr call(const relax::Operator& op, std::vector<Expr> args, relax::AttributesRef attributes = {});
  // The same with the attributes by their names, for those that ops/attributes.h does not have: {{"axis", axis}}.
  Expr call(const relax::Operator& op, std::vector<Expr> args, const ir::Value::Map& attributes);
  Expr cast(Expr x, DType dtype);  // as it is when it has that type
  // A scalar of that type.
  Expr scalar(DType dtype, double value);
  Expr reshape(Expr x, Shape shape);
  relax::BlockBuilder& builder() { return builder_; }

  // ---- graphs inside the node (operators that hold none have no converter) ----
  NestedGraphs& graphs() { return *graphs_; }

  // ---- outputs ----
  size_t output_count() const { return output_names_.size(); }
  // The number of dimensions that the graph declares for an output, where it declares any.
  std::optional<int64_t> declared_rank(size_t i) const;
  void declare_ranks(const std::unordered_map<std::string, int64_t>* ranks) { declared_ranks_ = ranks; }
  bool wants(size_t i) const { return i < output_names_.size() && !output_names_[i].empty(); }
  void set(Expr tensor) { set(0, std::move(tensor)); }
  void set(size_t i, Expr tensor);
  void set_integers(Integers integers, std::vector<int64_t> dims, DType dtype);
  // Input `i` as it is, known integers included.
  void pass_on(size_t i);

  [[noreturn]] void fail(support::Code code, std::string message) const;
  // The axis in [0, rank), else a diagnostic.
  int64_t axis(int64_t given, int64_t rank, std::string_view name = "axis") const;
  std::vector<int64_t> axes(const std::vector<int64_t>& given, int64_t rank, std::string_view name = "axes") const;

  std::vector<GraphValue>& results() { return results_; }
  bool keeps_integers() const;  // the result's integers are few, and small expressions
  void clear_results();
  const support::Place& place() const { return place_; }

 private:
  NestedGraphs* graphs_ = nullptr;
  relax::BlockBuilder& builder_;
  std::vector<GraphValue*> inputs_;  // null: absent
  std::vector<std::string> output_names_;
  std::vector<GraphValue> results_;
  support::Place place_;
  const std::unordered_map<std::string, int64_t>* declared_ranks_ = nullptr;
  const std::vector<std::string>* input_names_ = nullptr;
  KnownSizes sizes_;
};

// Attributes of type T with `fill` applied.
template <class T, class Fill>
relax::AttributesRef attributes_with(Fill&& fill) {
  ir::Ref<T> made = ir::make<T>();
  fill(const_cast<T&>(*made));
  return made;
}

// Shapes and integers of larger expressions are not kept: none that a model means grows so far.
inline constexpr int64_t largest_expression = 2000;
bool is_small(const ir::Expr& e, int64_t most_terms = largest_expression);

// The tensor of `value`, made of its integers where it has none yet.
Expr tensor_of(relax::BlockBuilder& builder, GraphValue& value);

// ---- the tables of operators (operators/<family>.cpp) ----

struct OperatorRow {
  std::string_view name;
  std::vector<int64_t> versions;  // those in which something that matters here changed, ascending
  size_t least_inputs, most_inputs, most_outputs;
  void (*convert)(NodeImport&);
  // Tried first when every input's integers are known: computes them, or returns false.
  bool (*fold)(NodeImport&) = nullptr;
  std::string_view domain = "";  // empty: ONNX's own
  bool takes_any = false;        // inputs may be sequences and optionals
  bool reads_around = false;     // more of the graph than its inputs
};
inline constexpr size_t any_number = 1u << 20;

// The row of an operator, or null.
const OperatorRow* find_operator(std::string_view domain, std::string_view name);

}  // namespace lathe::onnx
