#include "ir/visit.h"
#include "schedule/primitives/cache/buffers.h"
#include "schedule/primitives/compute/inline.h"

namespace lathe::schedule::primitives {

Result<Edit> set_scope(const Program& program, Id id, int64_t index, const std::string& scope) {
  const Path path = TRY(block_path(program, id));
  const Block& block = *path.back().as<BlockRealize>()->block;
  const std::vector<Buffer> written = outer_buffers(path, true);
  if (index < 0 || index >= static_cast<int64_t>(written.size()))
    return refuse(codes::bad_argument,
                  fmt::format("{} writes {} buffers, there is no number {}", name_of(block), written.size(), index));
  const Buffer buffer = written[static_cast<size_t>(index)];
  if (!allocating_block(*program.function, buffer))
    return refuse(codes::bad_argument,
                  fmt::format("'{}' is a parameter of the function: its scope is given", buffer->name));
  const Buffer moved = with(*buffer, [&](BufferNode& copy) { copy.scope = scope; });
  return edited(program, with_body(program.function, with_buffer(program.function->body, buffer, moved)), program.next);
}

}  // namespace lathe::schedule::primitives
