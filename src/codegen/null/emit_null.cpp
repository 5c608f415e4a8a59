#include "codegen/null/emit_null.h"

#include "codegen/emit/codes.h"
#include "ir/visit.h"

namespace lathe::codegen {
namespace {

std::string extent_text(const ir::Buffer& buffer) {
  if (buffer->shape.empty()) return "1";
  const auto known = ir::as_int(buffer->shape[0]);
  return known ? std::to_string(*known) : "?";
}

// How often each kind of statement occurs, by name.
std::map<std::string, int> statements_of(const tir::PrimFunc& function) {
  std::map<std::string, int> counts;
  ir::pre_order(function.body, [&](const ir::NodeRef& n) {
    if (n->node_class().family == tir::StmtNode::family) ++counts[std::string(n->node_class().name)];
    return true;
  });
  return counts;
}

std::string listing(const Kernel& kernel) {
  const tir::PrimFunc& f = *kernel.function;
  std::string text = fmt::format("kernel {}\n", kernel.name);
  for (const ir::Var& param : f.params) {
    const ir::Buffer buffer = f.buffer_of(param);
    if (buffer)
      text += fmt::format("  buffer {}: {}[{}]\n", buffer->name, buffer->dtype.str(), extent_text(buffer));
    else
      text += fmt::format("  scalar {}: {}\n", param->name, param->dtype.str());
  }
  text += "  body:";
  for (const auto& [name, count] : statements_of(f)) text += fmt::format(" {} {}", count, name);
  return text + "\n";
}

}  // namespace

support::Result<std::string> emit_null(const std::vector<Kernel>& kernels, const target::Target&,
                                       const EmitOptions& options) {
  if (options.kind != EmitKind::listing)
    return support::Diagnostic{
        .code = codes::unsupported_emission,
        .message = fmt::format("the null target emits a listing, no {}", emit_kind_name(options.kind))};
  support::Diagnostics problems;
  std::string text;
  for (const Kernel& kernel : kernels) {
    for (support::Diagnostic& d : check_kernel(kernel, "null")) problems.push_back(std::move(d));
    if (problems.empty()) text += listing(kernel);
  }
  if (!problems.empty()) return problems;
  return text;
}

}  // namespace lathe::codegen
