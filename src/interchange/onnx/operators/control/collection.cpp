// Sequences and optionals.
#include "relax/collection.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/control/loop.h"
#include "interchange/onnx/operators/tables.h"
#include "onnx_schema.pb.h"
#include "relax/infer.h"

namespace lathe::onnx::operators {

using relax::OptionalStructInfo;
using relax::SequenceStructInfo;
using relax::StructInfo;
using relax::TensorStructInfo;

namespace {

const StructInfo& element_of(NodeImport& c, size_t i) {
  const Expr x = c.input(i);
  const auto* sequence = x->struct_info.as<SequenceStructInfo>();
  if (!sequence)
    c.fail(codes::wrong_node,
           "the input " + std::to_string(i) + " is " + text_of_info(x->struct_info) + ", but a sequence is needed");
  return sequence->element;
}
// The same of a sequence of which elements are read.
const StructInfo& read_element(NodeImport& c, size_t i) {
  const StructInfo& element = element_of(c, i);
  if (!element.is<TensorStructInfo>())
    c.fail(codes::unsupported, "an element is read of a sequence of " + text_of_info(element));
  return element;
}

Expr tensor_input(NodeImport& c, size_t i) {
  const Expr x = c.input(i);
  if (!relax::as_tensor(x))
    c.fail(codes::wrong_node,
           "the input " + std::to_string(i) + " is " + text_of_info(x->struct_info) + ", but a tensor is needed");
  return x;
}

// A position among elements, or null.
Expr position_input(NodeImport& c, size_t i) {
  if (!c.has(i)) return {};
  const Expr x = tensor_input(c, i);
  if (c.dtype(i) != DType::int64() && c.dtype(i) != DType::int32())
    c.fail(codes::wrong_node,
           "the position is " + relax::text_of(*relax::as_tensor(x)) + ", but int64 or int32 is needed");
  return as_scalar(c, x);
}

StructInfo join_types(NodeImport& c, const StructInfo& a, const StructInfo& b) {
  StructInfo both = relax::joined_elements(a, relax::element_info(b));
  if (!both) c.fail(codes::wrong_node, "elements of one sequence are " + text_of_info(a) + " and " + text_of_info(b));
  return both;
}

// A tensor taken out of a sequence or an optional, with names for its extents.
Expr named_element(NodeImport& c, const Expr& x) {
  const auto* info = relax::as_tensor(x);
  if (!info) return x;
  if (info->ndim < 0) c.fail(codes::unsupported, "an element is read where there can be none");
  return named(
      c, x, info->shape ? Extents(info->shape->begin(), info->shape->end()) : Extents(static_cast<size_t>(info->ndim)),
      "element");
}
Expr element_at(NodeImport& c, const Expr& sequence, const Expr& position) {
  return named_element(c, emit_call(c, relax::sequence_at_operator, {sequence, position}));
}

Expr empty_sequence(NodeImport& c, DType dtype) {
  return emit_call(c, relax::make_sequence_operator, {}, {relax::tensor_info_of_rank(-1, dtype)});
}
Expr inserted(NodeImport& c, const Expr& sequence, const Expr& value, const Expr& position) {
  const StructInfo& element = sequence->struct_info.as<SequenceStructInfo>()->element;
  return emit_call(c, relax::sequence_insert_operator, {sequence, value, position},
                   {join_types(c, element, value->struct_info)});
}

// Sequences of what `each` makes of the elements at each position, of so many.
std::vector<Expr> mapped(NodeImport& c, const Expr& count, const std::vector<DType>& dtypes,
                         const std::function<std::vector<Expr>(const Expr& position)>& each) {
  Turns turns;
  turns.trips = count;
  for (const DType dtype : dtypes) turns.initial.push_back(empty_sequence(c, dtype));
  turns.body = [&](const Expr& turn, const Expr& condition, const std::vector<Expr>& carried) {
    std::vector<Expr> results{condition};
    const std::vector<Expr> made = each(turn);
    for (size_t k = 0; k < carried.size(); ++k) results.push_back(inserted(c, carried[k], made.at(k), {}));
    return results;
  };
  return emit_loop(c, turns);
}
Expr mapped(NodeImport& c, const Expr& sequence, const std::function<Expr(const Expr&)>& each) {
  const DType dtype = sequence->struct_info.as<SequenceStructInfo>()->element.as<TensorStructInfo>()->dtype;
  const Expr count = emit_call(c, relax::sequence_length_operator, {sequence});
  return mapped(c, count, {dtype}, [&](const Expr& at) { return std::vector{each(element_at(c, sequence, at))}; })[0];
}

// ---- sequences ----

void sequence_empty(NodeImport& c) {
  const int64_t number = c.attributes.integer("dtype", schema::TensorProto::FLOAT);
  c.set(empty_sequence(c, element_type(number, "the sequence", c.place()).value_or_throw()));
}

void sequence_construct(NodeImport& c) {
  std::vector<Expr> items;
  StructInfo element;
  for (size_t i = 0; i < c.input_count(); ++i) {
    items.push_back(tensor_input(c, i));
    const StructInfo own = relax::element_info(items.back()->struct_info);
    element = element ? join_types(c, element, own) : own;
  }
  c.set(emit_call(c, relax::make_sequence_operator, std::move(items), {element}));
}

void sequence_insert(NodeImport& c) {
  element_of(c, 0);
  const Expr value = tensor_input(c, 1), position = position_input(c, 2);
  c.set(inserted(c, c.input(0), value, position));
}

void sequence_erase(NodeImport& c) {
  element_of(c, 0);
  c.set(emit_call(c, relax::sequence_erase_operator, {c.input(0), position_input(c, 1)}));
}

void sequence_at(NodeImport& c) {
  read_element(c, 0);
  c.set(element_at(c, c.input(0), position_input(c, 1)));
}

void sequence_length(NodeImport& c) {
  element_of(c, 0);
  c.set(emit_call(c, relax::sequence_length_operator, {c.input(0)}));
}

void concat_from_sequence(NodeImport& c) {
  const int64_t rank = read_element(c, 0).as<TensorStructInfo>()->ndim;
  if (rank < 0) c.fail(codes::unsupported, "a sequence is joined that can have no elements");
  const bool new_axis = c.attributes.flag("new_axis", false);
  const int64_t axis = c.axis(c.attributes.integer("axis"), rank + (new_axis ? 1 : 0));
  Expr sequence = c.input(0);
  if (!new_axis && axis != 0) sequence = mapped(c, sequence, [&](const Expr& x) { return axis_to_first(c, x, axis); });
  const auto attributes =
      attributes_with<relax::JoinSequenceAttributes>([&](relax::JoinSequenceAttributes& a) { a.new_axis = new_axis; });
  const Expr joined = named_element(c, emit_call(c, relax::join_sequence_operator, {sequence}, {}, attributes));
  c.set(first_axis_to(c, joined, axis));
}

void split_to_sequence(NodeImport& c) {
  const Expr x = tensor_input(c, 0);
  const int64_t axis = c.axis(c.attributes.integer("axis", 0), c.rank(0));
  const bool keep = c.attributes.flag("keepdims", true) || c.has(1);
  Expr sizes;
  if (c.has(1)) {
    sizes = tensor_input(c, 1);
    if (c.rank(1) > 1)
      c.fail(codes::wrong_node, "split is a scalar or a vector, not " + text_of_info(sizes->struct_info));
  }
  const auto attributes =
      attributes_with<relax::SplitSequenceAttributes>([&](relax::SplitSequenceAttributes& a) { a.keep_axis = keep; });
  const Expr parts = emit_call(c, relax::split_sequence_operator, {axis_to_first(c, x, axis), sizes}, {}, attributes);
  c.set(keep && axis != 0 ? mapped(c, parts, [&](const Expr& part) { return first_axis_to(c, part, axis); }) : parts);
}

// The body's outputs for the elements at each position of the first input; other inputs may be tensors.
void sequence_map(NodeImport& c) {
  const schema::GraphProto& body = c.attributes.graph("body");
  for (size_t i = 0; i < c.input_count(); ++i)
    if (i == 0 || c.input(i)->struct_info.is<SequenceStructInfo>()) read_element(c, i);
  if (static_cast<size_t>(body.input_size()) != c.input_count() ||
      static_cast<size_t>(body.output_size()) != c.output_count())
    c.fail(codes::wrong_node, "body has " + std::to_string(body.input_size()) + " inputs and " +
                                  std::to_string(body.output_size()) + " outputs, but the node has " +
                                  std::to_string(c.input_count()) + " and " + std::to_string(c.output_count()));
  std::vector<Expr> inputs;
  for (size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.input(i));
  const auto each = [&](const Expr& at) {
    std::vector<GraphValue> given;
    for (const Expr& x : inputs)
      given.push_back({.tensor = x->struct_info.is<SequenceStructInfo>() ? element_at(c, x, at) : x});
    return results_of_body(c, body, std::move(given));
  };
  // What the outputs are is known when the body is converted: once for that alone.
  const relax::BlockBuilder::Mark mark = c.builder().mark();
  std::vector<DType> dtypes;
  c.builder().begin_scope();
  c.builder().begin_dataflow();
  for (const Expr& result : each(c.scalar(DType::int64(), 0))) {
    const auto* tensor = relax::as_tensor(result);
    if (!tensor) c.fail(codes::unsupported, "body gives " + text_of_info(result->struct_info) + ", not a tensor");
    dtypes.push_back(tensor->dtype);
  }
  c.builder().go_back(mark);
  const Expr count = emit_call(c, relax::sequence_length_operator, {inputs[0]});
  set_results(c, mapped(c, count, dtypes, each));
}

// ---- optionals ----

// The type of the value that an optional without one would have.
StructInfo stated_type(NodeImport& c, const schema::TypeProto& type, int depth = 0) {
  if (type.has_tensor_type())
    return relax::tensor_info_of_rank(
        -1, element_type(type.tensor_type().elem_type(), "the value of the optional", c.place()).value_or_throw());
  if (depth < 2 && type.has_sequence_type())
    return ir::make<SequenceStructInfo>(stated_type(c, type.sequence_type().elem_type(), depth + 1));
  if (depth < 2 && type.has_optional_type()) return stated_type(c, type.optional_type().elem_type(), depth + 1);
  c.fail(codes::unsupported, "an optional that is of no tensor and no sequence of them");
}

void optional(NodeImport& c) {
  const schema::TypeProto* type = c.attributes.type("type");
  if (c.has(0)) {
    const Expr x = c.input(0);
    return c.set(emit_call(c, relax::make_optional_operator, {x}, {relax::element_info(x->struct_info)}));
  }
  if (!type) c.fail(codes::wrong_attribute, "an optional without a value needs the attribute 'type'");
  c.set(emit_call(c, relax::make_optional_operator, {}, {stated_type(c, *type)}));
}

void optional_has_element(NodeImport& c) {
  if (c.has(0) && c.value(0).tensor && c.input(0)->struct_info.is<OptionalStructInfo>())
    return c.set(emit_call(c, relax::optional_has_operator, {c.input(0)}));
  c.set(c.scalar(DType::boolean(), c.has(0) ? 1 : 0));
}

void optional_get_element(NodeImport& c) {
  if (!c.value(0).tensor || !c.input(0)->struct_info.is<OptionalStructInfo>()) return c.pass_on(0);
  c.set(named_element(c, emit_call(c, relax::optional_get_operator, {c.input(0)})));
}

constexpr bool any = true;

}  // namespace

std::string text_of_info(const StructInfo& info) {
  if (const auto* tensor = info.as<TensorStructInfo>()) return relax::text_of(*tensor);
  if (const auto* sequence = info.as<SequenceStructInfo>()) return "a sequence of " + text_of_info(sequence->element);
  if (const auto* optional = info.as<OptionalStructInfo>()) return "an optional of " + text_of_info(optional->element);
  return info.is<relax::ObjectStructInfo>() ? "tensors of several numbers of dimensions" : "another value";
}

Table collection() {
  static const OperatorRow rows[] = {
      {"SequenceEmpty", {11}, 0, 0, 1, sequence_empty},
      {"SequenceConstruct", {11}, 1, any_number, 1, sequence_construct, nullptr, "", any},
      {"SequenceInsert", {11}, 2, 3, 1, sequence_insert, nullptr, "", any},
      {"SequenceErase", {11}, 1, 2, 1, sequence_erase, nullptr, "", any},
      {"SequenceAt", {11}, 2, 2, 1, sequence_at, nullptr, "", any},
      {"SequenceLength", {11}, 1, 1, 1, sequence_length, nullptr, "", any},
      {"ConcatFromSequence", {11}, 1, 1, 1, concat_from_sequence, nullptr, "", any},
      {"SplitToSequence", {11}, 1, 2, 1, split_to_sequence, nullptr, "", any},
      {"SequenceMap", {17}, 1, any_number, any_number, sequence_map, nullptr, "", any},
      {"Optional", {15}, 0, 1, 1, optional, nullptr, "", any},
      {"OptionalHasElement", {15, 18}, 0, 1, 1, optional_has_element, nullptr, "", any},
      {"OptionalGetElement", {15, 18}, 1, 1, 1, optional_get_element, nullptr, "", any},
  };
  return rows;
}

}  // namespace lathe::onnx::operators
