#include "relax/assert_op.h"

#include "relax/attributes.h"
#include "relax/infer.h"

namespace lathe::relax {

namespace {

Result<StructInfo> infer_assert(const InferContext& c) {
  const auto* condition = c.args.empty() || !c.args[0] ? nullptr : c.args[0].as<PrimValue>();
  if (!condition)
    return wrong(codes::wrong_arguments, "the condition of assert_op is a scalar over extents, such as n < 3");
  if (c.args.size() > 1 && c.args[1]) TRY(shape_argument(c, 1));
  return StructInfo(make<TupleStructInfo>(std::vector<StructInfo>{}));
}

}  // namespace

const Operator assert_operator{
    .name = "assert_op",
    .inputs = {{"condition", Input::required, Input::scalar}, {"format_args", Input::optional, Input::shape}},
    .attributes = attributes_of<AssertAttributes>(),
    .infer = infer_assert,
    .meaning = RuntimeKernel{"assert_op"},
    .reference = "assert condition, format.format(*format_args)",
};

Message& Message::operator<<(std::string_view text) {
  // Names of a model's may hold what stands for a number.
  for (const char c : text) format_ += c == '{' ? '(' : c == '}' ? ')' : c;
  return *this;
}

Message& Message::operator<<(const ir::Expr& number) {
  const ir::Expr simple = simplified(number);
  if (const auto known = ir::as_int(simple)) return *this << std::to_string(*known);
  format_ += "{}";
  numbers_.push_back(simple);
  return *this;
}

Message& Message::operator<<(const std::vector<ir::Expr>& shape) {
  *this << "[";
  for (size_t d = 0; d < shape.size(); ++d) *this << (d ? ", " : "") << shape[d];
  return *this << "]";
}

Message& Message::operator<<(const Message& other) {
  format_ += other.format_;
  numbers_.insert(numbers_.end(), other.numbers_.begin(), other.numbers_.end());
  return *this;
}

std::string Message::text() const {
  std::vector<std::string> values;
  for (const ir::Expr& number : numbers_) values.push_back(text_of(number));
  return formatted(format_, values);
}

std::string formatted(const std::string& format, const std::vector<std::string>& values) {
  std::string text;
  size_t next = 0;
  for (size_t at = 0; at < format.size(); ++at) {
    const bool stands_for_one = format.compare(at, 2, "{}") == 0 && next < values.size();
    if (stands_for_one) {
      text += values[next++];
      ++at;
    } else {
      text += format[at];
    }
  }
  return text;
}

Result<Expr> make_assert(const ir::Expr& condition, const Message& message, ir::Origin origin) {
  const ir::Ref<AssertAttributes> attributes = make<AssertAttributes>(message.format());
  return make_call(assert_operator, {make<PrimValue>(condition), make<ShapeExpr>(message.numbers())}, attributes,
                   std::move(origin));
}

std::optional<Assert> as_assert(const Expr& e) {
  const auto* call = e.as<Call>();
  if (!call || callee_operator(*call) != &assert_operator) return std::nullopt;
  Assert parts{call->args.at(0).as<PrimValue>()->value, {}, {}};
  if (call->args.size() > 1 && call->args[1]) parts.numbers = call->args[1].as<ShapeExpr>()->values;
  parts.format = static_cast<const AssertAttributes*>(call->attributes.get())->format;
  return parts;
}

}  // namespace lathe::relax
