#include "tir/interpret/interpret.h"

#include "tir/codes.h"
#include "tir/interpret/machine.h"

namespace lathe::tir {
namespace {

[[noreturn]] void refuse_argument(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::argument_mismatch, .message = std::move(message)});
}

// The extents, where all are constants.
std::vector<int64_t> constant_extents(const BufferNode& buffer) {
  std::vector<int64_t> extents;
  for (const Expr& extent : buffer.shape)
    if (const auto value = as_int(extent)) extents.push_back(*value);
  return extents.size() == buffer.shape.size() ? extents : std::vector<int64_t>{};
}
int64_t product_of(const std::vector<int64_t>& extents) {
  return extents.empty() ? -1 : std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Binds a dimension: a symbol without a value takes the argument's extent, anything else must have it.
void match_extent(interpreter::Machine& machine, const Buffer& buffer, size_t axis, int64_t extent,
                  const std::vector<int64_t>& shape) {
  const Expr& declared = buffer->shape[axis];
  if (const auto* symbol = declared.as<VarNode>(); symbol && !machine.value_of(Var(symbol))) {
    machine.bind(Var(symbol), interpreter::Value(symbol->dtype, {extent, 0}));
    return;
  }
  // An expression whose symbols are bound by a later parameter is checked by its accesses.
  for (const Var& used : free_vars(declared))
    if (!machine.value_of(used)) return;
  if (const int64_t expected = machine.evaluate_int(declared); expected != extent)
    refuse_argument(fmt::format("argument '{}' of shape {} has {} in dimension {}, not {}", buffer->name,
                                shape_text(shape), extent, axis, expected));
}

// An argument of a buffer whose rows lie apart: its elements are spread over memory of that layout, and come back from
// it when the function is done. Symbols of the layout are those of rows without gaps.
struct Spread {
  TensorBuffer* arg = nullptr;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  TensorBuffer apart;

  int64_t place(int64_t element) const {
    int64_t at = offset;
    for (size_t d = strides.size(); d-- > 0; element /= arg->shape[d]) at += element % arg->shape[d] * strides[d];
    return at;
  }
  // Moves every element, and whether it holds a value, between the two.
  void move(bool back) {
    const int64_t bits = arg->dtype.storage_bits() * arg->dtype.lanes;
    for (int64_t k = 0; k < arg->elements(); ++k) {
      const int64_t from = (back ? place(k) : k) * bits, to = (back ? k : place(k)) * bits;
      const auto copy = [&](std::vector<uint8_t>& source, std::vector<uint8_t>& target) {
        if (source.empty() || target.empty()) return;
        for (int64_t done = 0; done < bits; done += 8) {
          const int64_t some = std::min<int64_t>(8, bits - done);
          interpreter::write_bits(target.data(), to + done, some,
                                  interpreter::read_bits(source.data(), from + done, some));
        }
      };
      copy(back ? apart.bytes : arg->bytes, back ? arg->bytes : apart.bytes);
      copy(back ? apart.written : arg->written, back ? arg->written : apart.written);
    }
  }
};

// Nothing where the argument is the memory itself: of another shape than the buffer's.
std::unique_ptr<Spread> spread(interpreter::Machine& machine, const Buffer& buffer, TensorBuffer& arg) {
  if (buffer->strides.empty() || arg.shape.size() != buffer->shape.size()) return nullptr;
  auto result = std::make_unique<Spread>();
  result->arg = &arg;
  for (size_t d = 0; d < arg.shape.size(); ++d) {
    const auto* symbol = buffer->shape[d].as<VarNode>();
    if (symbol && !machine.value_of(Var(symbol))) {
      machine.bind(Var(symbol), interpreter::Value(symbol->dtype, {arg.shape[d], 0}));
      continue;
    }
    for (const Var& used : free_vars(buffer->shape[d]))
      if (!machine.value_of(used)) return nullptr;
    if (machine.evaluate_int(buffer->shape[d]) != arg.shape[d]) return nullptr;
  }
  const auto told = [&](const Expr& e, int64_t value) {
    const auto* symbol = e.as<VarNode>();
    if (symbol && !machine.value_of(Var(symbol)))
      machine.bind(Var(symbol), interpreter::Value(symbol->dtype, {value, 0}));
    return machine.evaluate_int(e);
  };
  int64_t compact = 1, last = 0;
  result->strides.resize(arg.shape.size());
  for (size_t d = arg.shape.size(); d-- > 0; compact *= arg.shape[d]) {
    result->strides[d] = told(buffer->strides[d], compact);
    if (result->strides[d] < 0) return nullptr;
    last += std::max<int64_t>(arg.shape[d] - 1, 0) * result->strides[d];
  }
  if (buffer->elem_offset) result->offset = told(buffer->elem_offset, 0);
  if (result->offset < 0) return nullptr;
  result->apart = TensorBuffer::uninitialised(arg.dtype, {result->offset + last + 1});
  if (arg.written.empty()) std::fill(result->apart.written.begin(), result->apart.written.end(), uint8_t{0xff});
  result->move(false);
  return result;
}

std::unique_ptr<Spread> bind_buffer(interpreter::Machine& machine, const Buffer& buffer, TensorBuffer& arg) {
  if (arg.dtype != buffer->dtype)
    refuse_argument(
        fmt::format("argument '{}' has dtype {}, not {}", buffer->name, arg.dtype.str(), buffer->dtype.str()));
  auto apart = spread(machine, buffer, arg);
  TensorBuffer& there = apart ? apart->apart : arg;
  std::vector<int64_t> shape = arg.shape;
  if (buffer->shape.size() == 1 && shape.size() != 1) shape = {arg.elements()};
  // So do groups of axes that became one each.
  if (!buffer->axis_separators.empty() && shape.size() > buffer->shape.size())
    if (const auto extents = constant_extents(*buffer); product_of(extents) == arg.elements()) shape = extents;
  if (shape.size() != buffer->shape.size())
    refuse_argument(fmt::format("argument '{}' of shape {} has {} dimensions, not {}", buffer->name,
                                shape_text(arg.shape), arg.shape.size(), buffer->shape.size()));
  // A layout of its own: the shape says which elements there are, the memory's size is the argument's.
  if (buffer->strides.empty())
    for (size_t d = 0; d < shape.size(); ++d) match_extent(machine, buffer, d, shape[d], arg.shape);
  auto memory = std::make_unique<interpreter::Memory>();
  memory->name = buffer->name;
  memory->bytes = there.bytes.data();
  memory->size = static_cast<int64_t>(there.bytes.size());
  memory->written = &there.written;
  machine.bind_memory(buffer->data, machine.adopt(std::move(memory)));
  return apart;
}

}  // namespace

support::Status interpret(const Function& function, std::vector<TensorBuffer>& args,
                          const std::vector<int64_t>& scalars, const InterpretOptions& options) {
  return support::catch_diagnostics([&]() -> support::Status {
    interpreter::Machine machine(options);
    size_t next_scalar = 0, next_buffer = 0;
    std::vector<std::unique_ptr<Spread>> apart;
    // Scalars first: they may be dimensions of buffers.
    for (const Var& param : function->params) {
      if (function->buffer_of(param) || param->dtype.is_handle()) continue;
      if (next_scalar == scalars.size())
        refuse_argument(fmt::format("the scalar parameter '{}' has no argument", param->name));
      machine.bind(param,
                   interpreter::Value(param->dtype, interpreter::from_bits(
                                                        param->dtype, static_cast<uint64_t>(scalars[next_scalar++]))));
    }
    for (const Var& param : function->params) {
      const Buffer buffer = function->buffer_of(param);
      if (!buffer) {
        if (!param->dtype.is_handle()) continue;
        refuse_argument(fmt::format("the handle parameter '{}' is bound to no buffer", param->name));
      }
      if (next_buffer == args.size())
        refuse_argument(fmt::format("the parameter '{}' has no argument: {} were given", param->name, args.size()));
      apart.push_back(bind_buffer(machine, buffer, args[next_buffer++]));
    }
    if (next_buffer != args.size())
      refuse_argument(fmt::format("{} arguments were given, the function takes {}", args.size(), next_buffer));
    if (next_scalar != scalars.size())
      refuse_argument(
          fmt::format("{} scalar arguments were given, the function takes {}", scalars.size(), next_scalar));
    machine.execute(function->body);
    for (const auto& each : apart)
      if (each) each->move(true);
    return support::success();
  });
}

}  // namespace lathe::tir
