#include "schedule/program.h"

#include <unordered_set>

#include "ir/visit.h"
#include "schedule/analysis/tree.h"

namespace lathe::schedule {

namespace {

class Numbering : public Rewriter {
 public:
  explicit Numbering(Id next) : next_(next) {}
  Id next() const { return next_; }
  void reserve(Id id) { next_ = std::max(next_, id + 1); }

 protected:
  NodeRef visit(NodeRef node) override {
    if (node->node_class().family == "expr") return node;
    if (const auto* loop = node.as<For>(); loop && !fresh(loop->id))
      node = with(*loop, [&](For& copy) { copy.id = take(); });
    else if (const auto* block = node.as<Block>(); block && !fresh(block->id))
      node = with(*block, [&](Block& copy) { copy.id = take(); });
    return descend(std::move(node));
  }

 private:
  bool fresh(Id id) { return id != 0 && seen_.insert(id).second; }
  Id take() {
    seen_.insert(next_);
    return next_++;
  }
  Id next_;
  std::unordered_set<Id> seen_;
};

void collect_ids(const Stmt& root, std::unordered_set<Id>& ids) {
  each_statement(root, [&](const Stmt& s) {
    if (const auto* loop = s.as<For>()) ids.insert(loop->id);
    if (const auto* block = s.as<Block>()) ids.insert(block->id);
  });
}

}  // namespace

Program number(Function function, Id next) {
  std::unordered_set<Id> ids;
  collect_ids(function->body, ids);
  Numbering numbering(next);
  for (const Id id : ids) numbering.reserve(id);
  const Stmt body = numbering(function->body);
  if (body.get() != function->body.get()) function = with(*function, [&](PrimFunc& copy) { copy.body = body; });
  return {std::move(function), numbering.next()};
}

Edit edited(const Program& before, Function after, Id next, std::vector<Id> created) {
  std::unordered_set<Id> old_ids, new_ids;
  collect_ids(before.function->body, old_ids);
  collect_ids(after->body, new_ids);
  Edit edit{{std::move(after), next}, {}, std::move(created)};
  for (const Id id : old_ids)
    if (!new_ids.count(id)) edit.ids.changed[id] = 0;
  return edit;
}

}  // namespace lathe::schedule
