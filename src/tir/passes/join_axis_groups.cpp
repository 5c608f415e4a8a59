#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(join_axis_groups_extent, "tir_test", "a group is as long as the one before it");

namespace {

class GroupJoining : public TirRewriter {
 public:
  Buffer joined(const Buffer& buffer) {
    if (buffer->shape.size() < 2 && buffer->axis_separators.empty()) return buffer;
    const auto it = joined_.find(buffer.get());
    if (it != joined_.end()) return it->second.joined;
    const Buffer result = with(*buffer, [&](BufferNode& copy) {
      copy.shape = {product(buffer->shape)};
      copy.axis_separators.clear();
    });
    joined_[buffer.get()] = {buffer, result};
    return result;
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    Stmt rewritten = children(std::move(s));
    const auto* store = rewritten.as<BufferStore>();
    if (!store || store->indices.size() < 2) return rewritten;
    return with(*store, [&](BufferStore& copy) { join(copy.buffer, copy.indices); });
  }
  Expr visit_expr(Expr e) override {
    Expr rewritten = children(std::move(e));
    const auto* load = rewritten.as<BufferLoad>();
    if (!load || load->indices.size() < 2) return rewritten;
    return with(*load, [&](BufferLoad& copy) { join(copy.buffer, copy.indices); });
  }

 private:
  void join(Buffer& buffer, std::vector<Expr>& indices) {
    Expr flat = indices[0];
    for (size_t group = 1; group < indices.size(); ++group) {
      const Expr& extent = buffer->shape[support::flip(join_axis_groups_extent) ? group - 1 : group];
      flat = add_index(mul_index(flat, extent), indices[group]);
    }
    indices = {flat};
    buffer = joined(buffer);
  }

  struct Joined {
    Buffer original, joined;  // the original is kept alive: the table goes by its address
  };
  std::unordered_map<const BufferNode*, Joined> joined_;
};

}  // namespace

Result<IRModule> join_axis_groups(IRModule module, const PassContext& context) {
  return on_each_function(std::move(module), context, [](const std::string&, const Function& f, const PassContext&) {
    GroupJoining joining;
    Stmt body = joining(f->body);
    return with(*f, [&](PrimFunc& copy) {
      copy.body = std::move(body);
      for (auto& [handle, buffer] : copy.buffer_map) buffer = joining.joined(buffer);
    });
  });
}

}  // namespace lathe::tir
