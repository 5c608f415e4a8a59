#include "schedule/analysis/proofs.h"

#include "schedule/analysis/tree.h"
#include "support/mutation.h"

namespace lathe::schedule {

LATHE_FAULT(proofs_forget_predicates, "schedule_test", "what was proved under a predicate is taken for proved without");

std::optional<bool> Proofs::find(const std::string& question) {
  const std::lock_guard lock(mutex_);
  ++counts_.asked;
  if (const auto it = recent_.find(question); it != recent_.end()) {
    ++counts_.found;
    return it->second;
  }
  const auto it = older_.find(question);
  if (it == older_.end()) return std::nullopt;
  ++counts_.found;
  const bool answer = it->second;
  auto node = older_.extract(it);
  insert(std::move(node.key()), answer);
  return answer;
}

void Proofs::keep(std::string question, bool answer) {
  const std::lock_guard lock(mutex_);
  insert(std::move(question), answer);
}

void Proofs::insert(std::string question, bool answer) {
  if (recent_.size() >= half_) {
    older_ = std::move(recent_);
    recent_.clear();
  }
  recent_.insert_or_assign(std::move(question), answer);
}

Proofs::Counts Proofs::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

size_t Proofs::size() const {
  const std::lock_guard lock(mutex_);
  return recent_.size() + older_.size();
}

namespace {

// Writes what is asked in Polish notation: an operator before its operands, so that no two expressions have one text.
class Writer {
 public:
  explicit Writer(const Ranges& around) : around_(around) {}
  std::string text;

  bool loop(const For& loop) {
    if (numbers_.count(loop.loop_var.get())) return true;
    text += 'L';
    return expression(loop.min) && expression(loop.extent) && expression(loop.loop_var);
  }

  bool access(const Access& access) {
    text += access.writes ? '!' : '@';
    for (const For* loop : access.loops) expression(loop->loop_var);
    for (const Range& range : access.region) {
      text += '[';
      if (!expression(range.min) || !expression(range.extent)) return false;
    }
    if (support::flip(proofs_forget_predicates)) return true;
    for (const Expr& condition : {access.predicate, access.guard}) {
      if (!condition) continue;
      text += '?';
      if (!expression(condition)) return false;
    }
    return true;
  }

 private:
  bool expression(const Expr& e) {
    if (e->dtype.is_vector()) return false;
    if (const auto* v = e.as<VarNode>()) {
      const auto [it, first] = numbers_.try_emplace(v, numbers_.size());
      (text += 'v') += std::to_string(it->second);
      // Of a size more can be proved than of another variable.
      if (first) (text += v->is_size ? 's' : 'i') += v->dtype.str();
      text += ' ';
      const auto known = first ? around_.find(Var(v)) : around_.end();
      if (known == around_.end()) return true;
      text += 'r';
      return expression(known->second.min) && expression(known->second.extent);
    }
    if (const auto value = as_int(e)) {
      (text += std::to_string(*value)) += ' ';
      return true;
    }
    const auto both = [&](char symbol, const auto* node) {
      text += symbol;
      return expression(node->a) && expression(node->b);
    };
    if (const auto* n = e.as<Add>()) return both('+', n);
    if (const auto* n = e.as<Sub>()) return both('-', n);
    if (const auto* n = e.as<Mul>()) return both('*', n);
    if (const auto* n = e.as<FloorDiv>()) return both('/', n);
    if (const auto* n = e.as<FloorMod>()) return both('%', n);
    if (const auto* n = e.as<Min>()) return both('m', n);
    if (const auto* n = e.as<Max>()) return both('M', n);
    if (const auto* n = e.as<LT>()) return both('<', n);
    if (const auto* n = e.as<LE>()) return both('l', n);
    if (const auto* n = e.as<GT>()) return both('>', n);
    if (const auto* n = e.as<GE>()) return both('g', n);
    if (const auto* n = e.as<EQ>()) return both('=', n);
    if (const auto* n = e.as<NE>()) return both('#', n);
    if (const auto* n = e.as<And>()) return both('&', n);
    if (const auto* n = e.as<Or>()) return both('|', n);
    if (const auto* n = e.as<Not>()) {
      text += '~';
      return expression(n->a);
    }
    return false;
  }

  const Ranges& around_;
  std::unordered_map<const VarNode*, size_t> numbers_;
};

}  // namespace

Ranges ranges_around(const PrimFunc& function, Id target) {
  Ranges ranges;
  const Path path = path_to(function.body, target);
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (const auto* loop = path[i].as<For>()) ranges[loop->loop_var] = {loop->min, loop->extent};
    if (const auto* block = path[i].as<Block>())
      for (const IterVar& iter : block->iter_vars) ranges[iter->var] = iter->dom;
  }
  return ranges;
}

std::optional<std::string> question_of(const For& loop, const std::vector<const Access*>& list, const Ranges& around) {
  Writer writer(around);
  if (!writer.loop(loop)) return std::nullopt;
  std::vector<std::pair<size_t, size_t>> different;  // accesses, as parts of the text
  for (const Access* access : list) {
    // How far a variable runs stands before the first access that names it.
    for (const For* inner : access->loops)
      if (!writer.loop(*inner)) return std::nullopt;
    const size_t start = writer.text.size();
    if (!writer.access(*access)) return std::nullopt;
    const std::string_view text = writer.text;
    const bool repeated = std::any_of(different.begin(), different.end(), [&](const auto& part) {
      return text.substr(part.first, part.second) == text.substr(start);
    });
    if (repeated)
      writer.text.resize(start);
    else
      different.emplace_back(start, text.size() - start);
  }
  return std::move(writer.text);
}

}  // namespace lathe::schedule
