#include "interchange/onnx/attributes.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/names.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using schema::AttributeProto;
using support::Diagnostic;
using support::DiagnosticError;

namespace {

std::string_view type_name(int type) {
  switch (type) {
    case AttributeProto::FLOAT:
      return "a number";
    case AttributeProto::INT:
      return "an integer";
    case AttributeProto::STRING:
      return "a text";
    case AttributeProto::TENSOR:
      return "a tensor";
    case AttributeProto::GRAPH:
      return "a graph";
    case AttributeProto::SPARSE_TENSOR:
      return "a sparse tensor";
    case AttributeProto::FLOATS:
      return "a list of numbers";
    case AttributeProto::INTS:
      return "a list of integers";
    case AttributeProto::STRINGS:
      return "a list of texts";
    default:
      return "of another type";
  }
}

// Files before IR version 3 leave the type out: then the field that is there tells it.
int type_of(const AttributeProto& a) {
  if (a.type() != AttributeProto::UNDEFINED) return a.type();
  if (a.has_f()) return AttributeProto::FLOAT;
  if (a.has_i()) return AttributeProto::INT;
  if (a.has_s()) return AttributeProto::STRING;
  if (a.has_t()) return AttributeProto::TENSOR;
  if (a.has_g()) return AttributeProto::GRAPH;
  if (a.floats_size() > 0) return AttributeProto::FLOATS;
  if (a.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::INTS;
}

}  // namespace

NodeAttributes::NodeAttributes(const Model& model, const schema::NodeProto& node, const NodeAttributes* given,
                               support::Place place)
    : model_(model), place_(std::move(place)) {
  for (const AttributeProto& attribute : node.attribute()) {
    const AttributeProto* proto = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      // Inside a function: the caller's attribute, or none when the caller leaves it out.
      proto = given ? given->find(attribute.ref_attr_name()) : nullptr;
      if (!proto) continue;
    }
    if (!entries_.try_emplace(attribute.name(), Entry{proto}).second)
      wrong("the attribute " + in_quotes(attribute.name()) + " is given twice");
  }
}

void NodeAttributes::wrong(std::string message) const {
  throw DiagnosticError(Diagnostic{.code = codes::wrong_attribute, .place = place_, .message = std::move(message)});
}

const AttributeProto* NodeAttributes::find(std::string_view name) const {
  const auto it = entries_.find(std::string(name));
  return it == entries_.end() ? nullptr : it->second.proto;
}

const AttributeProto* NodeAttributes::find_used(std::string_view name) {
  const auto it = entries_.find(std::string(name));
  if (it == entries_.end()) return nullptr;
  it->second.used = true;
  return it->second.proto;
}

const AttributeProto* NodeAttributes::find_typed(std::string_view name, int type) {
  const AttributeProto* proto = find_used(name);
  if (proto && type_of(*proto) != type)
    wrong("the attribute '" + std::string(name) + "' is " + std::string(type_name(type_of(*proto))) + ", not " +
          std::string(type_name(type)));
  return proto;
}

int64_t NodeAttributes::integer(std::string_view name, int64_t otherwise) {
  const AttributeProto* proto = find_typed(name, AttributeProto::INT);
  return proto ? proto->i() : otherwise;
}

int64_t NodeAttributes::integer(std::string_view name) {
  if (!has(name)) wrong("the attribute '" + std::string(name) + "' is missing");
  return integer(name, 0);
}

bool NodeAttributes::flag(std::string_view name, bool otherwise) {
  const int64_t value = integer(name, otherwise);
  if (value != 0 && value != 1)
    wrong("the attribute '" + std::string(name) + "' is " + std::to_string(value) + ", not 0 or 1");
  return value != 0;
}

double NodeAttributes::number(std::string_view name, double otherwise) {
  const AttributeProto* proto = find_typed(name, AttributeProto::FLOAT);
  return proto ? static_cast<double>(proto->f()) : otherwise;
}

std::string NodeAttributes::text(std::string_view name, std::string_view otherwise) {
  const AttributeProto* proto = find_typed(name, AttributeProto::STRING);
  return proto ? proto->s() : std::string(otherwise);
}

std::string NodeAttributes::word(std::string_view name, std::initializer_list<std::string_view> words) {
  const std::string value = text(name, *words.begin());
  if (std::find(words.begin(), words.end(), value) != words.end()) return value;
  std::string known;
  for (const std::string_view one : words) known += (known.empty() ? "'" : ", '") + std::string(one) + "'";
  wrong("the attribute '" + std::string(name) + "' is " + in_quotes(value) + ", not one of " + known);
}

std::optional<std::vector<int64_t>> NodeAttributes::integers(std::string_view name) {
  const AttributeProto* proto = find_typed(name, AttributeProto::INTS);
  if (!proto) return std::nullopt;
  return std::vector<int64_t>(proto->ints().begin(), proto->ints().end());
}

std::optional<std::vector<float>> NodeAttributes::numbers(std::string_view name) {
  const AttributeProto* proto = find_typed(name, AttributeProto::FLOATS);
  if (!proto) return std::nullopt;
  return std::vector<float>(proto->floats().begin(), proto->floats().end());
}

std::optional<std::vector<std::string>> NodeAttributes::texts(std::string_view name) {
  const AttributeProto* proto = find_typed(name, AttributeProto::STRINGS);
  if (!proto) return std::nullopt;
  return std::vector<std::string>(proto->strings().begin(), proto->strings().end());
}

const schema::GraphProto& NodeAttributes::graph(std::string_view name) {
  const AttributeProto* a = find_typed(name, AttributeProto::GRAPH);
  if (!a) wrong("the attribute " + in_quotes(name) + ", a graph, is missing");
  return a->g();
}

const schema::TypeProto* NodeAttributes::type(std::string_view name) {
  const AttributeProto* a = find_typed(name, AttributeProto::TYPE_PROTO);
  return a ? &a->tp() : nullptr;
}

ir::TensorData NodeAttributes::tensor(std::string_view name) {
  const AttributeProto* proto = find_typed(name, AttributeProto::TENSOR);
  if (!proto) return {};
  return read_tensor(model_, proto->t(), "the attribute '" + std::string(name) + "'", place_).value_or_throw();
}

std::optional<Strings> NodeAttributes::strings(std::string_view name) {
  const AttributeProto* proto = find_typed(name, AttributeProto::TENSOR);
  if (!proto || !holds_strings(proto->t())) return std::nullopt;
  return read_strings(model_, proto->t(), "the attribute '" + std::string(name) + "'", place_).value_or_throw();
}

ir::TensorData NodeAttributes::sparse_tensor(std::string_view name) {
  const AttributeProto* proto = find_typed(name, AttributeProto::SPARSE_TENSOR);
  if (!proto) return {};
  return read_sparse_tensor(model_, proto->sparse_tensor(), "the attribute '" + std::string(name) + "'", place_)
      .value_or_throw();
}

void NodeAttributes::add_default(const AttributeProto& attribute) {
  entries_.try_emplace(attribute.name(), Entry{&attribute});
}

void NodeAttributes::check_all_used() const {
  // The first by name, so that the message does not depend on the hash table.
  const std::string* unknown = nullptr;
  for (const auto& [name, entry] : entries_)
    if (!entry.used && (!unknown || name < *unknown)) unknown = &name;
  if (unknown) wrong("this version of the operator has no attribute " + in_quotes(*unknown));
}

}  // namespace lathe::onnx
