// storage_align: rows of an intermediate start at multiples of a number of elements (plus an offset), so that they do
// not share a cache line or a memory bank.
#include "schedule/primitives/cache/buffers.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(storage_align_overlaps, "schedule_test", "storage_align: a row starts before the one before it ends");

Result<Edit> storage_align(const Program& program, Id id, int64_t write_buffer_index, int64_t axis, int64_t factor,
                           int64_t offset) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(buffer_of(path, {.writes = true, .number = write_buffer_index}));
  if (auto refused = refuse_fixed(*program.function, buffer, "align the rows of")) return *std::move(refused);
  const auto rank = static_cast<int64_t>(buffer->shape.size());
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("cannot align the rows of '{}': {}", buffer->name, why));
  };
  if (axis < -rank || axis >= rank) return problem(fmt::format("it has {} axes, there is no axis {}", rank, axis));
  if (factor < 1) return problem(fmt::format("factor {} is not positive", factor));
  if (offset < 0 || offset >= factor)
    return problem(fmt::format("offset {} is not below the factor {}", offset, factor));
  if (buffer->scope == "register") return problem("it is in registers");
  const auto aligned = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  arith::Analyzer analyzer;
  std::vector<Expr> strides(buffer->shape.size());
  Expr stride = int64(1);
  for (size_t d = strides.size(); d-- > 0;) {
    if (d == aligned) {
      // The smallest number from the compact stride on that leaves the offset.
      stride = analyzer.simplify(floordiv(stride - offset + (factor - 1), int64(factor)) * factor + offset);
      if (support::flip(storage_align_overlaps)) stride = analyzer.simplify(max(stride - factor, int64(1)));
    }
    strides[d] = stride;
    stride = analyzer.simplify(stride * buffer->shape[d]);
  }
  const Buffer moved = with(*buffer, [&](BufferNode& copy) { copy.strides = strides; });
  return edited(program, with_body(program.function, with_buffer(program.function->body, buffer, moved)), program.next);
}

}  // namespace lathe::schedule::primitives
