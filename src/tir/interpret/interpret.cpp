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

void bind_buffer(interpreter::Machine& machine, const Buffer& buffer, TensorBuffer& arg) {
  if (arg.dtype != buffer->dtype)
    refuse_argument(
        fmt::format("argument '{}' has dtype {}, not {}", buffer->name, arg.dtype.str(), buffer->dtype.str()));
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
  memory->bytes = arg.bytes.data();
  memory->size = static_cast<int64_t>(arg.bytes.size());
  memory->written = &arg.written;
  machine.bind_memory(buffer->data, machine.adopt(std::move(memory)));
}

}  // namespace

support::Status interpret(const Function& function, std::vector<TensorBuffer>& args,
                          const std::vector<int64_t>& scalars, const InterpretOptions& options) {
  return support::catch_diagnostics([&]() -> support::Status {
    interpreter::Machine machine(options);
    size_t next_scalar = 0, next_buffer = 0;
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
      bind_buffer(machine, buffer, args[next_buffer++]);
    }
    if (next_buffer != args.size())
      refuse_argument(fmt::format("{} arguments were given, the function takes {}", args.size(), next_buffer));
    if (next_scalar != scalars.size())
      refuse_argument(
          fmt::format("{} scalar arguments were given, the function takes {}", scalars.size(), next_scalar));
    machine.execute(function->body);
    return support::success();
  });
}

}  // namespace lathe::tir
