#include "codegen/emit/polls.h"

#include "ir/match.h"
#include "ir/visit.h"

namespace lathe::codegen {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

namespace {

// Work is counted in nodes of expressions, vectors by sixteen lanes: each is about a nanosecond or less.
constexpr double longest_stretch = 1 << 25;  // work without a question
constexpr double longest_run = 1 << 19;      // of a loop that is cut into runs
constexpr double worth_a_question = 512;     // work that makes one question cheap

struct Work {
  double least = 0;      // in one execution
  double unasked = 0;    // the most between two questions
  bool is_open = false;  // holds a loop that asks: executions differ much
};

double work_of(const Expr& e) {
  double work = 0;
  post_order(e, [&](const NodeRef& n) {
    const bool typed = n->node_class().family == ExprNode::family;
    work += typed ? std::max(1, static_cast<const ExprNode*>(n.get())->dtype.lanes / 16) : 1;
  });
  return work;
}

Work leaf(double work) { return {work, work, false}; }

Work after(const Work& a, const Work& b) { return {a.least + b.least, a.unasked + b.unasked, a.is_open || b.is_open}; }

class Planner {
 public:
  PollPlan plan;

  Work look(const Stmt& s) {
    return match_all(
        s, [&](const LetStmt& n) { return after(leaf(work_of(n.value)), look(n.body)); },
        [&](const AttrStmt& n) { return look(n.body); },
        [&](const AssertStmt& n) { return leaf(work_of(n.condition)); },
        [&](const BufferStore& n) {
          double work = work_of(n.value);
          for (const Expr& index : n.indices) work += work_of(index);
          return leaf(work);
        },
        [&](const DeclBuffer& n) { return look(n.body); }, [&](const Allocate& n) { return look(n.body); },
        [&](const AllocateConst& n) { return look(n.body); },
        [&](const SeqStmt& n) {
          Work all;
          for (const Stmt& child : n.seq) all = after(all, look(child));
          return all;
        },
        [&](const IfThenElse& n) { return either(n); }, [&](const Evaluate& n) { return leaf(work_of(n.value)); },
        [&](const For& n) { return loop(n); }, [&](const While& n) { return endless(n); },
        [&](const Block& n) { return look(n.body); }, [&](const BlockRealize& n) { return look(Stmt(n.block)); });
  }

 private:
  Work either(const IfThenElse& n) {
    const Work then_case = look(n.then_case), else_case = n.else_case ? look(n.else_case) : Work{};
    const double condition = work_of(n.condition);
    return {condition + std::min(then_case.least, else_case.least),
            condition + std::max(then_case.unasked, else_case.unasked), then_case.is_open || else_case.is_open};
  }

  Work loop(const For& n) {
    const Work body = look(n.body);
    const std::optional<int64_t> extent = as_int(n.extent);
    const auto times = static_cast<double>(std::max<int64_t>(0, extent.value_or(0)));
    const double unasked = body.unasked + 1;
    if (extent && times * unasked <= longest_stretch) return {times * body.least, times * unasked, body.is_open};
    const bool asks_each = body.is_open || body.least >= worth_a_question || unasked >= longest_run;
    const int64_t every = asks_each ? 1 : static_cast<int64_t>(longest_run / unasked);
    plan[&n] = {every};
    // Fewer iterations than that ask nothing at all: the loop around counts what they may take.
    return {times * body.least, static_cast<double>(every) * unasked, true};
  }

  Work endless(const While& n) {
    const Work body = after(look(n.body), leaf(work_of(n.condition)));
    plan[&n] = {1};
    return {0, body.unasked, true};
  }
};

}  // namespace

PollPlan plan_polls(const Stmt& body) {
  Planner planner;
  planner.look(body);
  return std::move(planner.plan);
}

}  // namespace lathe::codegen
