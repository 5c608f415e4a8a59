#include "ir/visit.h"
#include "schedule/primitives/compute/inline.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(transform_layout_keeps_indices, "schedule_test",
            "transform_layout: the shape is permuted, the indices are not");

namespace {

template <class T>
std::vector<T> permuted(const std::vector<T>& list, const std::vector<int64_t>& axes) {
  std::vector<T> result;
  for (const int64_t axis : axes) result.push_back(list[static_cast<size_t>(axis)]);
  return result;
}

class Permute : public Rewriter {
 public:
  Permute(const Buffer& from, const Buffer& to, const std::vector<int64_t>& axes) : from_(from), to_(to), axes_(axes) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node.get() == static_cast<const Node*>(from_.get())) return to_;
    if (node->node_class().has_identity) return node;
    // The buffer's field is rewritten with the children, so what remains is the order of the indices.
    node = descend(std::move(node));
    if (const auto* load = node.as<BufferLoad>(); load && load->buffer == to_)
      return with(*load, [&](BufferLoad& copy) { copy.indices = permuted(load->indices, axes_); });
    if (const auto* store = node.as<BufferStore>(); store && store->buffer == to_)
      return with(*store, [&](BufferStore& copy) { copy.indices = permuted(store->indices, axes_); });
    if (const auto* region = node.as<BufferRegionNode>(); region && region->buffer == to_)
      return with(*region, [&](BufferRegionNode& copy) { copy.region = permuted(region->region, axes_); });
    return node;
  }

 private:
  const Buffer &from_, &to_;
  const std::vector<int64_t>& axes_;
};

}  // namespace

Result<Edit> transform_layout(const Program& program, Id id, int64_t index, const std::vector<int64_t>& axes) {
  const Path path = TRY(block_path(program, id));
  const Block& block = *path.back().as<BlockRealize>()->block;
  const std::vector<Buffer> written = buffers_written(path.back());
  if (index < 0 || index >= static_cast<int64_t>(written.size()))
    return refuse(codes::bad_argument,
                  fmt::format("{} writes {} buffers, there is no number {}", name_of(block), written.size(), index));
  const Buffer buffer = written[static_cast<size_t>(index)];
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("cannot change the layout of '{}': {}", buffer->name, why));
  };
  if (!allocating_block(*program.function, buffer)) return problem("it is a parameter of the function");
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i) || sorted.size() != buffer->shape.size())
      return problem(fmt::format("[{}] is no order of its {} axes", fmt::join(axes, ", "), buffer->shape.size()));
  if (axes.size() != buffer->shape.size())
    return problem(fmt::format("[{}] is no order of its {} axes", fmt::join(axes, ", "), buffer->shape.size()));
  for (const Access& access : accesses(program.function->body))
    if (access.buffer == buffer && access.opaque) return problem("its address is taken");
  bool vectors = !buffer->strides.empty();
  post_order(program.function->body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    const auto* match = n.as<MatchBufferRegionNode>();
    vectors = vectors || (load && load->buffer == buffer && load->dtype.lanes != buffer->dtype.lanes) ||
              (match && match->source->buffer == buffer);
  });
  if (vectors) return problem("it is read in vectors, through a view, or has strides");
  const Buffer moved = with(*buffer, [&](BufferNode& copy) { copy.shape = permuted(buffer->shape, axes); });
  const std::vector<int64_t> identity = sorted;
  const Stmt body =
      Permute(buffer, moved, support::flip(transform_layout_keeps_indices) ? identity : axes)(program.function->body);
  return edited(program, with_body(program.function, body), program.next);
}

}  // namespace lathe::schedule::primitives
