#include "codegen/emit/effort.h"

#include "ir/visit.h"

namespace lathe::codegen {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

namespace {

constexpr double unknown_iterations = 1000;

double nodes_of(const NodeRef& root) {
  double count = 0;
  pre_order(root, [&](const NodeRef&) {
    ++count;
    return true;
  });
  return count;
}

// About how many instructions a run executes: expressions by the iterations of the loops around them.
double executed(const Stmt& s) {
  if (const auto* loop = s.as<For>()) {
    const auto extent = as_int(loop->extent);
    return (extent ? static_cast<double>(std::max<int64_t>(*extent, 0)) : unknown_iterations) * executed(loop->body);
  }
  if (const auto* repeat = s.as<While>())
    return unknown_iterations * (nodes_of(repeat->condition) + executed(repeat->body));
  double sum = 0;
  s->node_class().for_each_child(*s, [&](const NodeRef& child) {
    if (!child || child->node_class().has_identity) return;
    sum += child->node_class().family == StmtNode::family ? executed(ir::detail::narrow<StmtNode>(child))
                                                          : nodes_of(child);
  });
  return sum;
}

// Programs written down to the instruction mean each of them.
bool names_instructions(const Stmt& s) {
  bool found = false;
  pre_order(s, [&](const NodeRef& n) {
    const auto* call = n.as<Call>();
    found =
        found || (call && (call->op == &intrinsic::call_llvm_intrin || call->op == &intrinsic::call_llvm_pure_intrin));
    return !found;
  });
  return found;
}

}  // namespace

std::vector<Effort> efforts_of(const std::vector<const Kernel*>& kernels, size_t most) {
  std::vector<Effort> efforts(kernels.size(), Effort::full);
  if (kernels.size() <= most) return efforts;
  std::vector<double> work;
  work.reserve(kernels.size());
  for (const Kernel* kernel : kernels) work.push_back(executed(kernel->function->body));
  std::vector<size_t> heaviest(kernels.size());
  std::iota(heaviest.begin(), heaviest.end(), 0);
  std::sort(heaviest.begin(), heaviest.end(),
            [&](size_t a, size_t b) { return work[a] != work[b] ? work[a] > work[b] : a < b; });
  for (size_t at = most; at < heaviest.size(); ++at)
    if (!names_instructions(kernels[heaviest[at]]->function->body)) efforts[heaviest[at]] = Effort::brief;
  return efforts;
}

}  // namespace lathe::codegen
