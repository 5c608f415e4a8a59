// Constant tensors: nested lists of numbers, or a reference to data kept beside the text.
#include "script/expr_reader.h"

namespace lathe::script {

using namespace ir;  // NOLINT: this file is about ir's kinds

namespace {

struct Collector {
  const ExprReader& reader;
  const syntax::Expr& at;
  std::vector<int64_t> shape;
  std::vector<const Value*> elements;

  void walk(const Value& v, size_t dimension) {
    const auto* list = v.get<Value::List>();
    if (!list) {
      if (dimension != shape.size()) ragged();
      elements.push_back(&v);
      return;
    }
    if (dimension == shape.size()) {
      if (!elements.empty()) ragged();
      shape.push_back(static_cast<int64_t>(list->size()));
    }
    if (shape[dimension] != static_cast<int64_t>(list->size())) ragged();
    for (const Value& item : *list) walk(item, dimension + 1);
  }
  [[noreturn]] void ragged() const {
    reader.fail(codes::wrong_arguments, at, "the lists of a constant differ in length or depth");
  }
};

void append(std::string& bytes, DType t, const Value& v, const ExprReader& reader, const syntax::Expr& at, int64_t i) {
  uint64_t word = 0;
  if (t.is_floating()) {
    double x = 0;
    if (const auto* d = v.get<double>())
      x = *d;
    else if (const auto* n = v.get<int64_t>())
      x = static_cast<double>(*n);
    else
      reader.fail(codes::wrong_type, at, "an element of a constant of " + t.str() + " is no number");
    word = encode_float(t, x);
  } else {
    if (const auto* b = v.get<bool>())
      word = *b;
    else if (const auto* n = v.get<int64_t>())
      word = static_cast<uint64_t>(*n);
    else if (const auto imm = node_in<IntImm>(v))
      word = static_cast<uint64_t>(imm->value);
    else
      reader.fail(codes::wrong_type, at, "an element of a constant of " + t.str() + " is no integer");
    if (t.is_integer() && v.get<int64_t>() && wrap_integer(*v.get<int64_t>(), t) != *v.get<int64_t>())
      reader.fail(codes::number_too_large, at, std::to_string(*v.get<int64_t>()) + " does not fit in " + t.str());
  }
  const int64_t bits = t.storage_bits();
  if (bits >= 8) {
    bytes.append(reinterpret_cast<const char*>(&word), static_cast<size_t>((bits + 7) / 8));
    return;
  }
  const int64_t place = i * bits;
  if (place % 8 == 0) bytes.push_back(0);
  bytes.back() = static_cast<char>(static_cast<uint8_t>(bytes.back()) | (word & ((1u << bits) - 1)) << (place % 8));
}

}  // namespace

TensorData ExprReader::constant_data(const Arguments& arguments) {
  arguments.check(3, {"value", "data", "dtype", "shape", "extents"});
  const Syntax& at =
      arguments.positional.empty() && arguments.named("data") ? *arguments.named("data") : arguments.need(0, "value");
  const Value v = value(at);
  const Syntax* named_type = arguments.find(1, "dtype");
  DType t = DType::void_();
  if (named_type) t = dtype(*named_type, "a constant");
  if (t.is_handle() || (named_type && t.is_void()))
    fail(codes::wrong_type, *named_type, "no constant is of " + t.str());
  std::vector<int64_t> shape;
  const Syntax* shape_argument = arguments.named("shape") ? arguments.named("shape") : arguments.find(2, "extents");
  if (shape_argument)
    for (const Expr& extent : expr_list(*shape_argument, "a shape")) {
      const auto known = as_int(extent);
      if (!known || *known < 0)
        fail(codes::wrong_arguments, *shape_argument, "a constant's extents are numbers, not negative");
      shape.push_back(*known);
    }
  if (const auto* reference = v.get<std::string>()) {
    if (!reference->starts_with("content:")) fail(codes::wrong_arguments, at, "'" + *reference + "' names no constant");
    TensorData data = context.options.constants ? context.options.constants(reference->substr(8)) : TensorData();
    if (!data)
      fail(codes::missing_constant, at, "the data of constant " + reference->substr(8) + " is not beside this text",
           "it is written to a side file when the text is saved; keep both");
    if (data->dtype != t || data->shape != shape)
      fail(codes::missing_constant, at,
           "constant " + reference->substr(8) + " has another dtype or shape than the text says");
    return data;
  }
  Collector collector{*this, at, {}, {}};
  collector.walk(v, 0);
  if (!shape_argument) shape = collector.shape;
  if (collector.elements.empty()) {
    int64_t count = 1;
    for (const int64_t extent : shape) count = extent == 0 || count == 0 ? 0 : 1;
    if (count != 0) fail(codes::wrong_arguments, at, "an empty constant has a shape with a zero");
  } else if (shape != collector.shape) {
    fail(codes::wrong_arguments, at, "the lists of a constant differ from its shape");
  }
  if (!named_type) {
    const bool floats = std::any_of(collector.elements.begin(), collector.elements.end(),
                                    [](const Value* x) { return x->get<double>() != nullptr; });
    const bool bools = !collector.elements.empty() && collector.elements[0]->get<bool>();
    t = floats ? DType::float32() : bools ? DType::boolean() : DType::int64();
  }
  if (t.is_integer() && (!std::has_single_bit(static_cast<unsigned>(t.bits)) || t.bits > 64))
    fail(codes::wrong_type, at, "a constant has elements of 1, 2, 4, 8, 16, 32 or 64 bits, not of " + t.str());
  std::string bytes;
  for (size_t i = 0; i < collector.elements.size(); ++i)
    append(bytes, t, *collector.elements[i], *this, at, static_cast<int64_t>(i));
  return tensor_data(t, std::move(shape), std::move(bytes));
}

}  // namespace lathe::script
