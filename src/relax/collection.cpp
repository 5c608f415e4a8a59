#include "relax/collection.h"

#include "relax/attributes.h"
#include "relax/infer.h"

namespace lathe::relax {

namespace {

StructInfo scalar_info(DType dtype) { return tensor_info(std::vector<int64_t>{}, dtype); }

std::string of_operator(const InferContext& c, size_t i) {
  return std::string(c.op.inputs[std::min(i, c.op.inputs.size() - 1)].name) + " of " + std::string(c.op.name);
}

// The element of argument i, a sequence (or an optional).
template <class Kind>
Result<StructInfo> element_of(const InferContext& c, size_t i, const char* what) {
  const auto* info = i < c.args.size() && c.args[i] ? c.args[i]->struct_info.as<Kind>() : nullptr;
  if (!info) return wrong(codes::wrong_arguments, of_operator(c, i) + " is no " + what);
  return info->element;
}
Result<StructInfo> sequence_element(const InferContext& c, size_t i) {
  return element_of<SequenceStructInfo>(c, i, "sequence");
}

// One of which something is read.
Result<StructInfo> read_element(const InferContext& c) {
  StructInfo element = TRY(sequence_element(c, 0));
  if (!element.is<TensorStructInfo>())
    return wrong(codes::wrong_arguments, of_operator(c, 0) + " has elements that may be of several ranks");
  return element;
}

support::Status check_position(const InferContext& c, size_t i) {
  if (i >= c.args.size() || !c.args[i]) return support::success();
  const TensorStructInfo& info = *TRY(tensor_argument(c, i));
  if ((info.dtype != DType::int64() && info.dtype != DType::int32()) || info.ndim > 0)
    return wrong(codes::wrong_arguments, of_operator(c, i) + " is a scalar of int64 or int32, not " + text_of(info));
  return support::success();
}

// The one type that `sinfo_args` gives for elements, which the arguments from `first` on must be.
Result<StructInfo> stated_element(const InferContext& c, size_t first) {
  const bool is_any = c.struct_info_args.size() == 1 && c.struct_info_args[0].is<ObjectStructInfo>();
  if (!is_any && (c.struct_info_args.size() != 1 || !c.struct_info_args[0].is<TensorStructInfo>()))
    return wrong(codes::wrong_arguments, std::string(c.op.name) + " says in sinfo_args what tensor its elements are");
  const StructInfo& element = c.struct_info_args[0];
  for (size_t i = first; i < c.args.size(); ++i) {
    if (!c.args[i]) continue;
    const TensorStructInfo& given = *TRY(tensor_argument(c, i));
    if (is_any) continue;
    const StructInfo both = joined(element, element_info(c.args[i]->struct_info));
    if (!both || !ir::structural_equal(both, element))
      return wrong(codes::wrong_arguments, of_operator(c, i) + " is " + text_of(given) + ", but elements are " +
                                               text_of(*element.as<TensorStructInfo>()));
  }
  return element;
}

Result<StructInfo> infer_make_sequence(const InferContext& c) {
  return StructInfo(make<SequenceStructInfo>(TRY(stated_element(c, 0))));
}

Result<StructInfo> infer_insert(const InferContext& c) {
  TRY(sequence_element(c, 0));
  TRY(check_position(c, 2));
  std::vector<Expr> args{c.args[1]};
  const InferContext only{c.op, args, c.attributes, c.struct_info_args};
  return StructInfo(make<SequenceStructInfo>(TRY(stated_element(only, 0))));
}

Result<StructInfo> infer_erase(const InferContext& c) {
  const StructInfo element = TRY(sequence_element(c, 0));
  TRY(check_position(c, 1));
  return StructInfo(make<SequenceStructInfo>(element));
}

Result<StructInfo> infer_at(const InferContext& c) {
  TRY(check_position(c, 1));
  return read_element(c);
}

Result<StructInfo> infer_length(const InferContext& c) {
  TRY(sequence_element(c, 0));
  return scalar_info(DType::int64());
}

Result<StructInfo> infer_join(const InferContext& c) {
  const StructInfo element = TRY(read_element(c));
  const auto& info = *element.as<TensorStructInfo>();
  const bool new_axis = c.attrs<JoinSequenceAttributes>().new_axis;
  if (info.ndim < 0) return wrong(codes::wrong_arguments, "an empty sequence is joined");
  if (info.ndim == 0 && !new_axis) return wrong(codes::wrong_rank, "scalars are joined along a new axis only");
  return tensor_info_of_rank(info.ndim + (new_axis ? 1 : 0), info.dtype);
}

Result<StructInfo> infer_split(const InferContext& c) {
  const TensorStructInfo& x = *TRY(tensor_argument(c, 0));
  if (x.ndim < 1) return wrong(codes::wrong_rank, "split_sequence of " + text_of(x) + ", which has no axis");
  if (c.args.size() > 1 && c.args[1]) {
    const TensorStructInfo& sizes = *TRY(tensor_argument(c, 1));
    if ((sizes.dtype != DType::int64() && sizes.dtype != DType::int32()) || sizes.ndim > 1 || sizes.ndim < 0)
      return wrong(codes::wrong_arguments,
                   "sizes of split_sequence is a scalar or vector of int64 or int32, not " + text_of(sizes));
  }
  const bool keep = c.attrs<SplitSequenceAttributes>().keep_axis;
  return StructInfo(make<SequenceStructInfo>(tensor_info_of_rank(x.ndim - (keep ? 0 : 1), x.dtype)));
}

Result<StructInfo> infer_make_optional(const InferContext& c) {
  if (c.struct_info_args.size() != 1)
    return wrong(codes::wrong_arguments, "make_optional says in sinfo_args what its value is");
  return StructInfo(make<OptionalStructInfo>(c.struct_info_args[0]));
}

Result<StructInfo> infer_has(const InferContext& c) {
  TRY(element_of<OptionalStructInfo>(c, 0, "optional"));
  return scalar_info(DType::boolean());
}

Result<StructInfo> infer_get(const InferContext& c) { return element_of<OptionalStructInfo>(c, 0, "optional"); }

}  // namespace

const Operator make_sequence_operator{.name = "make_sequence",
                                      .inputs = {{"items", Input::variadic}},
                                      .infer = infer_make_sequence,
                                      .meaning = RuntimeKernel{"make_sequence"},
                                      .reference = "list(items)"};
const Operator sequence_insert_operator{.name = "sequence_insert",
                                        .inputs = {{"sequence"}, {"value"}, {"position", Input::optional}},
                                        .infer = infer_insert,
                                        .meaning = RuntimeKernel{"sequence_insert"},
                                        .reference = "sequence[:position] + [value] + sequence[position:]"};
const Operator sequence_erase_operator{.name = "sequence_erase",
                                       .inputs = {{"sequence"}, {"position", Input::optional}},
                                       .infer = infer_erase,
                                       .meaning = RuntimeKernel{"sequence_erase"},
                                       .reference = "sequence[:position] + sequence[position + 1:]"};
const Operator sequence_at_operator{.name = "sequence_at",
                                    .inputs = {{"sequence"}, {"position"}},
                                    .infer = infer_at,
                                    .meaning = RuntimeKernel{"sequence_at"},
                                    .reference = "sequence[position]"};
const Operator sequence_length_operator{.name = "sequence_length",
                                        .inputs = {{"sequence"}},
                                        .infer = infer_length,
                                        .meaning = RuntimeKernel{"sequence_length"},
                                        .reference = "len(sequence)"};
const Operator join_sequence_operator{.name = "join_sequence",
                                      .inputs = {{"sequence"}},
                                      .attributes = attributes_of<JoinSequenceAttributes>(),
                                      .infer = infer_join,
                                      .meaning = RuntimeKernel{"join_sequence"},
                                      .reference = "numpy.concatenate(sequence, axis), or numpy.stack"};
const Operator split_sequence_operator{.name = "split_sequence",
                                       .inputs = {{"x"}, {"sizes", Input::optional}},
                                       .attributes = attributes_of<SplitSequenceAttributes>(),
                                       .infer = infer_split,
                                       .meaning = RuntimeKernel{"split_sequence"},
                                       .reference = "numpy.split(x, numpy.cumsum(sizes)[:-1], axis)"};
const Operator make_optional_operator{.name = "make_optional",
                                      .inputs = {{"value", Input::optional}},
                                      .infer = infer_make_optional,
                                      .meaning = RuntimeKernel{"make_optional"},
                                      .reference = "value"};
const Operator optional_has_operator{.name = "optional_has",
                                     .inputs = {{"optional"}},
                                     .infer = infer_has,
                                     .meaning = RuntimeKernel{"optional_has"},
                                     .reference = "optional is not None"};
const Operator optional_get_operator{.name = "optional_get",
                                     .inputs = {{"optional"}},
                                     .infer = infer_get,
                                     .meaning = RuntimeKernel{"optional_get"},
                                     .reference = "optional"};

StructInfo joined_elements(const StructInfo& a, const StructInfo& b) {
  if (a.is<ObjectStructInfo>()) return a;
  if (b.is<ObjectStructInfo>()) return b;
  if (const auto *x = a.as<TensorStructInfo>(), *y = b.as<TensorStructInfo>(); x && y && x->dtype == y->dtype)
    if (x->ndim >= 0 && y->ndim >= 0 && x->ndim != y->ndim) return make<ObjectStructInfo>();
  return joined(a, b);
}

StructInfo joined(const StructInfo& a, const StructInfo& b) {
  if (const auto *x = a.as<TensorStructInfo>(), *y = b.as<TensorStructInfo>(); x && y) {
    if (x->dtype != y->dtype) return {};
    if (x->ndim < 0) return b;
    if (y->ndim < 0) return a;
    if (x->ndim != y->ndim) return {};
    return x->shape && y->shape && same_shape(*x->shape, *y->shape) ? a : tensor_info_of_rank(x->ndim, x->dtype);
  }
  if (const auto *x = a.as<SequenceStructInfo>(), *y = b.as<SequenceStructInfo>(); x && y) {
    StructInfo element = joined_elements(x->element, y->element);
    return element ? StructInfo(make<SequenceStructInfo>(std::move(element))) : StructInfo();
  }
  if (const auto *x = a.as<OptionalStructInfo>(), *y = b.as<OptionalStructInfo>(); x && y) {
    StructInfo element = joined(x->element, y->element);
    return element ? StructInfo(make<OptionalStructInfo>(std::move(element))) : StructInfo();
  }
  return {};
}

StructInfo element_info(const StructInfo& info) {
  const auto* tensor = info.as<TensorStructInfo>();
  if (!tensor || !tensor->shape || constant_shape(*tensor->shape)) return info;
  return tensor_info_of_rank(tensor->ndim, tensor->dtype);
}

}  // namespace lathe::relax
