#include "driver/arguments.h"

#include <bit>

#include "driver/codes.h"
#include "ir/formats/dlpack_type.h"
#include "tir/rewrite.h"

namespace lathe::driver {
namespace {

using ir::Expr;
using ir::Var;
using support::Diagnostic;

[[noreturn]] void refuse_argument(support::Code code, std::string message, std::string help = "") {
  throw support::DiagnosticError(Diagnostic{.code = code, .message = std::move(message), .help = std::move(help)});
}

std::string dim_text(const Expr& dim) {
  if (const auto size = ir::as_int(dim)) return std::to_string(*size);
  if (const auto* symbol = dim.as<ir::VarNode>()) return symbol->name;
  return "…";
}

std::string shape_text(const DLTensor& t) { return fmt::format("[{}]", fmt::join(t.shape, t.shape + t.ndim, ", ")); }

bool is_compact(const DLTensor& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (int32_t d = t.ndim; d-- > 0; expected *= t.shape[d]) {
    if (t.shape[d] == 0) return true;
    if (t.shape[d] != 1 && t.strides[d] != expected) return false;
  }
  return true;
}

// The half-open range of bytes that a tensor's elements lie in.
std::pair<const char*, const char*> extent_of(const DLTensor& t) {
  const char* begin = static_cast<const char*>(t.data) + t.byte_offset;
  int64_t low = 0, high = 0, compact = 1;
  for (int32_t d = t.ndim; d-- > 0; compact *= t.shape[d]) {
    if (t.shape[d] == 0) return {begin, begin};
    const int64_t reach = (t.shape[d] - 1) * (t.strides ? t.strides[d] : compact);
    (reach < 0 ? low : high) += reach;
  }
  const int64_t bits = t.dtype.bits * t.dtype.lanes;
  return {begin + low * bits / 8, begin + ((high + 1) * bits + 7) / 8};
}

class Binding {
 public:
  Binding(const FunctionSignature& signature, const std::vector<Argument>& arguments)
      : signature_(signature), function_(*signature.declared), arguments_(arguments) {}

  BoundArguments bind(const std::vector<ScalarSource>& sources) {
    if (arguments_.size() != function_.params.size())
      refuse_argument(codes::input_count, fmt::format("'{}' takes {} arguments ({}), {} are given", signature_.name,
                                                      function_.params.size(), all_parameters(), arguments_.size()));
    for (size_t i = 0; i < arguments_.size(); ++i) check_kind(i);
    // Sizes that are symbols alone bind them; everything else is computed from those.
    for (size_t i = 0; i < arguments_.size(); ++i) bind_symbols(i);
    for (size_t i = 0; i < arguments_.size(); ++i) check_sizes(i);
    check_overlaps();
    BoundArguments bound;
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (const DLTensor* t = tensor(i)) bound.addresses.push_back(static_cast<char*>(t->data) + t->byte_offset);
    for (const ScalarSource& source : sources) bound.scalars.push_back(scalar(source));
    return bound;
  }

 private:
  std::string all_parameters() const {
    std::string text;
    for (size_t i = 0; i < function_.params.size(); ++i) text += (i ? ", " : "") + describe_parameter(signature_, i);
    return text;
  }
  const DLTensor* tensor(size_t i) const {
    const auto* held = std::get_if<const DLTensor*>(&arguments_[i]);
    return held ? *held : nullptr;
  }
  ir::Buffer buffer(size_t i) const { return function_.buffer_of(function_.params[i]); }
  std::string described(size_t i) const {
    return fmt::format("argument {} of '{}' must be {}", i, signature_.name, describe_parameter(signature_, i));
  }

  void check_kind(size_t i) const {
    const DLTensor* t = tensor(i);
    const Var& param = function_.params[i];
    if (!t) {
      if (param->dtype.is_handle()) refuse_argument(codes::input_kind, described(i) + ", it is a number");
      if (!param->dtype.is_floating() && std::holds_alternative<double>(arguments_[i]))
        refuse_argument(codes::input_kind, described(i) + ", it is a float");
      return;
    }
    if (!param->dtype.is_handle()) refuse_argument(codes::input_kind, described(i) + ", it is a tensor");
    if (t->device.device_type != kDLCPU && t->device.device_type != kDLCUDAHost)
      refuse_argument(codes::input_device, described(i) + ", it lies on another device than the CPU");
    const ir::Buffer b = buffer(i);
    if (!b) return;
    const ir::DType given = ir::dtype_of(t->dtype);
    if (given != b->dtype) refuse_argument(codes::input_dtype, described(i) + ", it is of " + given.str());
    if (static_cast<size_t>(t->ndim) != b->shape.size())
      refuse_argument(codes::input_shape, described(i) + ", it has the shape " + shape_text(*t));
  }

  void bind_symbols(size_t i) {
    const DLTensor* t = tensor(i);
    const ir::Buffer b = buffer(i);
    if (!t || !b) return;
    for (size_t d = 0; d < b->shape.size(); ++d)
      if (const auto* symbol = b->shape[d].as<ir::VarNode>())
        sizes_.try_emplace(Var(symbol), ir::constant(symbol->dtype, t->shape[d]));
    int64_t compact = 1;
    for (size_t d = b->strides.size(); d-- > 0; compact *= t->shape[d])
      if (const auto* symbol = b->strides[d].as<ir::VarNode>())
        sizes_.try_emplace(Var(symbol), ir::constant(symbol->dtype, t->strides ? t->strides[d] : compact));
    if (b->elem_offset)
      if (const auto* symbol = b->elem_offset.as<ir::VarNode>())
        sizes_.try_emplace(Var(symbol), ir::constant(symbol->dtype, int64_t{0}));
    for (size_t p = 0; p < function_.params.size(); ++p)
      if (const auto* number = std::get_if<int64_t>(&arguments_[p]))
        sizes_.insert_or_assign(function_.params[p], ir::constant(function_.params[p]->dtype, *number));
  }

  std::optional<int64_t> known(const Expr& e) const {
    if (const auto size = ir::as_int(e)) return size;
    return ir::as_int(tir::fold_constants(ir::substitute(e, sizes_)));
  }

  void check_sizes(size_t i) const {
    const DLTensor* t = tensor(i);
    const ir::Buffer b = buffer(i);
    if (!t || !b) return;
    for (size_t d = 0; d < b->shape.size(); ++d) {
      const auto wanted = known(b->shape[d]);
      if (!wanted)
        refuse_argument(codes::input_shape,
                        fmt::format("dimension {} of '{}' cannot be told from the arguments", d, b->name));
      if (t->shape[d] == *wanted) continue;
      std::string message = described(i) + ", it has the shape " + shape_text(*t);
      if (!ir::as_int(b->shape[d])) message += fmt::format("; dimension {} is {} by the arguments before", d, *wanted);
      refuse_argument(codes::input_shape, message);
    }
    if (b->strides.empty()) {
      if (!is_compact(*t))
        refuse_argument(codes::input_strides,
                        described(i) + fmt::format(", it has gaps: its strides are [{}]",
                                                   fmt::join(t->strides, t->strides + t->ndim, ", ")),
                        "numpy.ascontiguousarray makes a compact copy");
      return;
    }
    int64_t compact = 1;
    for (size_t d = b->strides.size(); d-- > 0; compact *= t->shape[d]) {
      const int64_t given = t->strides ? t->strides[d] : compact;
      const auto wanted = known(b->strides[d]);
      if (wanted && *wanted != given && t->shape[d] > 1)
        refuse_argument(codes::input_strides,
                        described(i) + fmt::format(", with stride {} in dimension {}, not {}", *wanted, d, given));
    }
  }

  // Code is generated as if what is written never lay in another argument's memory.
  void check_overlaps() const {
    for (size_t w = 0; w < arguments_.size(); ++w) {
      if (!tensor(w) || !signature_.is_written[w]) continue;
      const auto [begin, end] = extent_of(*tensor(w));
      for (size_t i = 0; i < arguments_.size(); ++i) {
        if (i == w || !tensor(i)) continue;
        const auto [other_begin, other_end] = extent_of(*tensor(i));
        if (std::less<>()(begin, other_end) && std::less<>()(other_begin, end) && begin != end &&
            other_begin != other_end)
          refuse_argument(codes::input_overlap,
                          fmt::format("arguments {} and {} of '{}' share memory, and it writes the {}", std::min(i, w),
                                      std::max(i, w), signature_.name, i < w ? "latter" : "former"));
      }
    }
  }

  int64_t scalar(const ScalarSource& source) const {
    if (source.symbol) {
      const auto size = known(source.symbol);
      if (!size)
        refuse_argument(codes::input_shape, fmt::format("the size '{}' of '{}' cannot be told from the arguments",
                                                        source.symbol->name, signature_.name));
      return *size;
    }
    const Argument& given = arguments_[source.parameter];
    if (source.dtype.is_floating()) {
      const auto* real = std::get_if<double>(&given);
      return std::bit_cast<int64_t>(real ? *real : static_cast<double>(std::get<int64_t>(given)));
    }
    const int64_t value = std::get<int64_t>(given);
    if (source.dtype.bits < 64 && ir::wrap_integer(value, source.dtype) != value)
      refuse_argument(codes::input_kind, fmt::format("{}, {} does not fit", described(source.parameter), value));
    return value;
  }

  const FunctionSignature& signature_;
  const tir::PrimFunc& function_;
  const std::vector<Argument>& arguments_;
  ir::VarMap sizes_;
};

}  // namespace

std::string describe_parameter(const FunctionSignature& signature, size_t parameter) {
  const Var& param = signature.declared->params[parameter];
  const ir::Buffer b = signature.declared->buffer_of(param);
  if (!b) return fmt::format("{}: {}", param->name, param->dtype.str());
  std::string dims;
  for (const Expr& dim : b->shape) dims += (dims.empty() ? "" : ", ") + dim_text(dim);
  return fmt::format("{}: {} [{}]", b->name, b->dtype.str(), dims);
}

support::Result<BoundArguments> bind_arguments(const FunctionSignature& signature,
                                               const std::vector<Argument>& arguments,
                                               const std::vector<ScalarSource>& sources) {
  return support::catch_diagnostics(
      [&]() -> support::Result<BoundArguments> { return Binding(signature, arguments).bind(sources); });
}

}  // namespace lathe::driver
