#include "relax/strings.h"

#include "relax/attributes.h"
#include "relax/infer.h"

namespace lathe::relax {

namespace {

Result<StructInfo> infer_strings(const InferContext& c) {
  const auto& attributes = c.attrs<StringsAttributes>();
  uint64_t count = 1;
  bool fits = true;
  for (const int64_t extent : attributes.shape)
    fits = fits && extent >= 0 && !__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count);
  if (!fits || count != attributes.texts.size())
    return wrong(codes::wrong_attribute, std::to_string(attributes.texts.size()) +
                                             " strings do not make a tensor of [" +
                                             fmt::format("{}", fmt::join(attributes.shape, ", ")) + "]");
  return tensor_info(attributes.shape, string_dtype);
}

Result<StructInfo> infer_as_strings(const InferContext& c) {
  const TensorStructInfo& x = *TRY(tensor_argument(c, 0));
  if (x.dtype != DType::int64())
    return wrong(codes::wrong_arguments, "as_strings takes numbers of int64, not " + text_of(x));
  return x.shape ? tensor_info(*x.shape, string_dtype) : tensor_info_of_rank(x.ndim, string_dtype);
}

}  // namespace

bool holds_strings(const StructInfo& info) {
  if (const auto* tensor = info.as<TensorStructInfo>()) return tensor->dtype == string_dtype;
  if (const auto* sequence = info.as<SequenceStructInfo>()) return holds_strings(sequence->element);
  if (const auto* optional = info.as<OptionalStructInfo>()) return holds_strings(optional->element);
  if (const auto* tuple = info.as<TupleStructInfo>())
    return std::any_of(tuple->items.begin(), tuple->items.end(), holds_strings);
  return info.is<ObjectStructInfo>();
}

const Operator strings_operator{.name = "strings",
                                .attributes = attributes_of<StringsAttributes>(),
                                .infer = infer_strings,
                                .meaning = RuntimeKernel{"strings"},
                                .reference = "numpy.array(texts, dtype=object).reshape(shape)"};

const Operator as_strings_operator{.name = "as_strings",
                                   .inputs = {{"numbers"}},
                                   .infer = infer_as_strings,
                                   .meaning = RuntimeKernel{"as_strings"},
                                   .reference = "numbers"};

Expr strings(std::vector<std::string> texts, std::vector<int64_t> shape, ir::Origin origin) {
  Ref<StringsAttributes> attributes = make<StringsAttributes>(std::move(texts), std::move(shape));
  return make_call(strings_operator, {}, std::move(attributes), std::move(origin)).value_or_throw();
}

}  // namespace lathe::relax
