// unsafe_set_dtype: an intermediate holds another type; values are converted where they are stored and loaded. Unsafe,
// because nothing says that the type holds all values.
#include "ir/visit.h"
#include "schedule/primitives/cache/buffers.h"
#include "support/mutation.h"

namespace lathe::schedule::primitives {

LATHE_FAULT(unsafe_set_dtype_narrows, "schedule_test", "unsafe_set_dtype: values pass through eight bits");

namespace {

class Retype : public Rewriter {
 public:
  Retype(const Buffer& from, const Buffer& to) : from_(from), to_(to) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node.get() == static_cast<const Node*>(from_.get())) return to_;
    if (node->node_class().has_identity) return node;
    // The buffer's field is rewritten with the children, so what remains is the values.
    const DType held = to_->dtype, wanted = from_->dtype;
    if (const auto* load = node.as<BufferLoad>(); load && load->buffer == from_) {
      std::vector<Expr> indices;
      for (const Expr& index : load->indices) indices.push_back((*this)(index));
      return ir::cast(wanted, ir::load(to_, indices));
    }
    if (const auto* store = node.as<BufferStore>(); store && store->buffer == from_) {
      Expr value = (*this)(store->value);
      if (support::flip(unsafe_set_dtype_narrows)) value = ir::cast(DType::int_(8), value);
      std::vector<Expr> indices;
      for (const Expr& index : store->indices) indices.push_back((*this)(index));
      return make<BufferStore>(to_, ir::cast(held, value), indices, (*this)(store->predicate));
    }
    return descend(std::move(node));
  }

 private:
  const Buffer &from_, &to_;
};

}  // namespace

Result<Edit> unsafe_set_dtype(const Program& program, Id id, int64_t write_buffer_index, DType dtype) {
  const Path path = TRY(block_path(program, id));
  const Buffer buffer = TRY(buffer_of(path, {.writes = true, .number = write_buffer_index}));
  if (auto refused = refuse_fixed(*program.function, buffer, "set the type of")) return *std::move(refused);
  const auto number = [](DType t) { return t.is_scalar() && (t.is_integer() || t.is_floating()); };
  if (!number(dtype) || !number(buffer->dtype))
    return refuse(codes::bad_argument, fmt::format("cannot set the type of '{}': {} cannot be kept as {}", buffer->name,
                                                   buffer->dtype.str(), dtype.str()));
  const Buffer moved = with(*buffer, [&](BufferNode& copy) { copy.dtype = dtype; });
  return edited(program, with_body(program.function, Retype(buffer, moved)(program.function->body)), program.next);
}

}  // namespace lathe::schedule::primitives
