// set_axis_separator: a buffer's axes fall into groups, each of which becomes one dimension where memory is addressed
// (flatten_buffers): images, banks.
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(set_axis_separator_drops_last, "schedule_test", "set_axis_separator: the last group joins the one before");

namespace {

Function with_buffer_everywhere(const Function& function, const Buffer& from, const Buffer& to) {
  return with(*function, [&](PrimFunc& copy) {
    for (auto& [handle, buffer] : copy.buffer_map)
      if (buffer == from) buffer = to;
    copy.body = with_buffer(function->body, from, to);
  });
}

}  // namespace

Result<Edit> set_axis_separator(const Program& program, Id id, BufferIndex which,
                                const std::vector<int64_t>& separators) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(buffer_of(path, which));
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("cannot separate the axes of '{}': {}", buffer->name, why));
  };
  const auto rank = static_cast<int64_t>(buffer->shape.size());
  for (size_t i = 0; i < separators.size(); ++i) {
    if (separators[i] < 1 || separators[i] >= rank)
      return problem(fmt::format("it has {} axes, and none begin a group at {}", rank, separators[i]));
    if (i > 0 && separators[i] <= separators[i - 1])
      return problem(fmt::format("separator {} does not come after {}", separators[i], separators[i - 1]));
  }
  // Where its elements lie is said already, or what lies there is seen in another shape too.
  if (!buffer->strides.empty() || buffer->elem_offset) return problem("its strides or its offset say where it lies");
  for (const Access& access : accesses(program.function->body))
    if (access.buffer == buffer && access.opaque) return problem("its address is taken");
  bool view = has_view(*program.function, buffer);
  post_order(program.function->body, [&](const NodeRef& n) {
    const auto* match = n.as<MatchBufferRegionNode>();
    view = view || (match && match->buffer == buffer);
  });
  if (view) return problem("it is seen through a view, or is one");
  const Buffer moved = with(*buffer, [&](BufferNode& copy) {
    copy.axis_separators = separators;
    if (!separators.empty() && support::flip(set_axis_separator_drops_last)) copy.axis_separators.pop_back();
  });
  return edited(program, with_buffer_everywhere(program.function, buffer, moved), program.next);
}

}  // namespace lathe::schedule::primitives
