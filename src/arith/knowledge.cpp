#include "arith/knowledge.h"

namespace lathe::arith {
namespace {

using namespace ir;

constexpr size_t first_memo = 8, largest_memo = 512;

bool has_data(const ExprNode& e) {
  switch (kind_of(e)) {
    case kind<VarNode>:
    case kind<IntImm>:
      return false;
    case kind<BufferLoad>:
    case kind<Call>:
    case kind<Cast>:
    case kind<Let>:
    case kind<Reduce>:
      return true;
    default:
      break;
  }
  bool found = false;
  e.node_class().for_each_child(e, [&](const NodeRef& child) {
    found = found || child->node_class().family != ExprNode::family || has_data(static_cast<const ExprNode&>(*child));
  });
  return found;
}

}  // namespace

bool is_index(const Knowledge& known, const Expr& e) {
  if (!e->dtype.is_int() || e->dtype.bits != 64) return false;
  return !known.value_position || !has_data(*e);
}

Knowledge::Memo& Knowledge::entry(const Expr& e) {
  const auto place = [&](const Expr& key) -> Memo& {
    const auto address = reinterpret_cast<uintptr_t>(key.get());
    return memo[((address >> 4) ^ (address >> 13)) & (memo.size() - 1)];
  };
  if (++asked > 2 * memo.size() && memo.size() < largest_memo) {
    std::vector<Memo> before(memo.empty() ? first_memo : 4 * memo.size());
    before.swap(memo);
    for (Memo& old : before)
      if (old.key) place(old.key) = std::move(old);
  }
  return place(e);
}

VarFacts& Knowledge::facts_of(const Var& v) {
  const auto [it, added] = vars.try_emplace(v.get());
  if (added) kept.push_back(v);
  if (!levels.empty()) changes.emplace_back(v.get(), it->second);
  return it->second;
}

void Knowledge::enter() {
  levels.push_back({facts.size(), terms.size(), truths.size(), changes.size(), epoch, contradiction});
  new_epoch();
}

void Knowledge::leave(size_t depth) {
  while (levels.size() > depth) {
    const Level level = levels.back();
    levels.pop_back();
    facts.resize(level.facts);
    terms.resize(level.terms);
    truths.resize(level.truths);
    while (changes.size() > level.changes) {
      vars[changes.back().first] = changes.back().second;
      changes.pop_back();
    }
    epoch = level.epoch;
    contradiction = level.contradiction;
  }
}

}  // namespace lathe::arith
