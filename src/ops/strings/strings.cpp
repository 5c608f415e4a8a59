// Operators that look into strings: kernels of the runtime (src/runtime/kernels/strings).
#include "relax/strings.h"

#include "abi/kernel_attributes_writer.h"
#include "ops/rule.h"
#include "ops/strings/regular_expression.h"
#include "relax/attributes.h"
#include "relax/infer.h"

namespace lathe::ops {

namespace {

using relax::string_dtype;

Result<const TensorStructInfo*> strings_argument(const InferContext& c, size_t i) {
  const TensorStructInfo* x = TRY(relax::tensor_argument(c, i));
  if (x->dtype == string_dtype) return x;
  return relax::wrong(codes::dtype_not_supported, std::string(c.op.inputs[i].name) + " of " + std::string(c.op.name) +
                                                      " is " + relax::text_of(*x) + ", which holds no strings");
}

StructInfo of_same_shape(const TensorStructInfo& x, DType dtype) {
  return x.shape ? relax::tensor_info(*x.shape, dtype) : relax::tensor_info_of_rank(x.ndim, dtype);
}

template <class T>
const T& attributes_of_call(const relax::Call& call) {
  return static_cast<const T&>(*call.attributes);
}

Result<StructInfo> infer_string_concat(const InferContext& c) {
  const TensorStructInfo &a = *TRY(strings_argument(c, 0)), &b = *TRY(strings_argument(c, 1));
  if (a.ndim != b.ndim || (a.shape && b.shape && !relax::same_shape(*a.shape, *b.shape)))
    return relax::wrong(codes::shape_mismatch, "string_concat takes two tensors of one shape, not " +
                                                   relax::text_of(a) + " and " + relax::text_of(b));
  return of_same_shape(a, string_dtype);
}

Result<StructInfo> infer_string_split(const InferContext& c) {
  const TensorStructInfo& x = *TRY(strings_argument(c, 0));
  std::vector<StructInfo> items{relax::tensor_info_of_rank(x.ndim < 0 ? -1 : x.ndim + 1, string_dtype),
                                of_same_shape(x, DType::int64())};
  return StructInfo(relax::make<relax::TupleStructInfo>(std::move(items)));
}

std::string split_attributes(const relax::Call& call) {
  const auto& a = attributes_of_call<StringSplitAttributes>(call);
  return abi::AttributeWriter().text(a.delimiter).word(a.most).take();
}

constexpr std::string_view letter_cases[] = {"none", "lower", "upper"};

Result<StructInfo> infer_string_normalize(const InferContext& c) {
  const TensorStructInfo& x = *TRY(strings_argument(c, 0));
  if (x.ndim != 1 && x.ndim != 2)
    return relax::wrong(codes::wrong_rank, "string_normalize takes a vector or one row, not " + relax::text_of(x));
  const auto& wanted = c.attrs<StringNormalizeAttributes>().letter_case;
  if (std::find(std::begin(letter_cases), std::end(letter_cases), wanted) == std::end(letter_cases))
    return relax::wrong(codes::wrong_attribute, "letter_case is '" + wanted + "', not none, lower or upper");
  return relax::tensor_info_of_rank(x.ndim, string_dtype);
}

std::string normalize_attributes(const relax::Call& call) {
  const auto& a = attributes_of_call<StringNormalizeAttributes>(call);
  const auto* row = std::find(std::begin(letter_cases), std::end(letter_cases), a.letter_case);
  abi::AttributeWriter writer;
  writer.word(row - std::begin(letter_cases)).word(a.is_case_sensitive ? 1 : 0);
  writer.word(static_cast<int64_t>(a.stop_words.size()));
  for (const std::string& word : a.stop_words) writer.text(word);
  return writer.take();
}

Result<StructInfo> infer_string_match(const InferContext& c) {
  const TensorStructInfo& x = *TRY(strings_argument(c, 0));
  TRY(compile_expression(c.attrs<StringMatchAttributes>().pattern));
  return of_same_shape(x, DType::boolean());
}

std::string match_attributes(const relax::Call& call) {
  const RegularExpression made =
      compile_expression(attributes_of_call<StringMatchAttributes>(call).pattern).value_or_throw();
  abi::AttributeWriter writer;
  writer.word(static_cast<int64_t>(made.instructions.size()));
  for (const RegularExpression::Instruction& each : made.instructions) writer.word(each.step).word(each.a).word(each.b);
  writer.word(static_cast<int64_t>(made.ranges.size()));
  for (const auto& [first, last] : made.ranges) writer.word(first).word(last);
  return writer.take();
}

Result<StructInfo> infer_string_order(const InferContext& c) {
  return of_same_shape(*TRY(strings_argument(c, 0)), DType::int64());
}

Result<StructInfo> infer_string_of_number(const InferContext& c) {
  const TensorStructInfo& x = *TRY(relax::tensor_argument(c, 0));
  const DType t = x.dtype;
  const bool is_real = t.is_ieee_float() && t.bits >= 32, is_whole = t.is_integer() && t.bits == 64;
  if (!is_real && !is_whole && !t.is_bool())
    return relax::wrong(codes::dtype_not_supported,
                        "string_of_number takes float32, float64, int64, uint64 or bool, not " + relax::text_of(x));
  return of_same_shape(x, string_dtype);
}

Result<StructInfo> infer_number_of_string(const InferContext& c) {
  const TensorStructInfo& x = *TRY(strings_argument(c, 0));
  const DType dtype = c.attrs<NumberOfStringAttributes>().dtype;
  if (dtype != DType::int64() && dtype != DType::float_(64))
    return relax::wrong(codes::wrong_attribute, "strings are read as float64 or int64, not " + dtype.str());
  return of_same_shape(x, dtype);
}

std::string number_attributes(const relax::Call& call) {
  const auto& a = attributes_of_call<NumberOfStringAttributes>(call);
  return abi::AttributeWriter().word(a.dtype.is_floating() ? 1 : 0).word(a.least).word(a.greatest).take();
}

}  // namespace

const relax::Operator string_concat{
    .name = "string_concat",
    .inputs = {{"a"}, {"b"}},
    .infer = infer_string_concat,
    .meaning = relax::RuntimeKernel{"strings.concat"},
    .reference = "a + b",
};

const relax::Operator string_split{
    .name = "string_split",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<StringSplitAttributes>(),
    .infer = infer_string_split,
    .meaning = relax::RuntimeKernel{"strings.split", split_attributes},
    .reference = "numpy.strings.split(x, delimiter, most)",
};

const relax::Operator string_normalize{
    .name = "string_normalize",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<StringNormalizeAttributes>(),
    .infer = infer_string_normalize,
    .meaning = relax::RuntimeKernel{"strings.normalize", normalize_attributes},
    .reference = "[s.lower() for s in x if s not in stop_words]",
};

const relax::Operator string_match{
    .name = "string_match",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<StringMatchAttributes>(),
    .infer = infer_string_match,
    .meaning = relax::RuntimeKernel{"strings.match", match_attributes},
    .reference = "re.fullmatch(pattern, x) is not None",
};

const relax::Operator string_order{
    .name = "string_order",
    .inputs = {{"x"}},
    .infer = infer_string_order,
    .meaning = relax::RuntimeKernel{"strings.order"},
    .reference = "numpy.unique(x, return_inverse=True)[1]",
};

const relax::Operator string_of_number{
    .name = "string_of_number",
    .inputs = {{"x"}},
    .infer = infer_string_of_number,
    .meaning = relax::RuntimeKernel{"strings.from_numbers"},
    .reference = "x.astype(str)",
};

const relax::Operator number_of_string{
    .name = "number_of_string",
    .inputs = {{"x"}},
    .attributes = relax::attributes_of<NumberOfStringAttributes>(),
    .infer = infer_number_of_string,
    .meaning = relax::RuntimeKernel{"strings.to_numbers", number_attributes},
    .reference = "x.astype(dtype)",
};

}  // namespace lathe::ops
