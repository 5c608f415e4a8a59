#include "codegen/llvm/load/perf_map.h"

#include <unistd.h>

#include <cstdio>

namespace lathe::codegen {

PerfMap::PerfMap(const std::string& folder, const std::vector<CompiledKernel>& kernels)
    : path_(fmt::format("{}/perf-{}.map", folder, ::getpid())) {
  for (const CompiledKernel& kernel : kernels) {
    std::string& name = names_[kernel.symbol];
    name += (name.empty() ? "lathe::" : "|") + kernel.name;
  }
}

std::string PerfMap::name_of(llvm::StringRef symbol) const {
  const auto it = names_.upper_bound(std::string_view(symbol.data(), symbol.size()));
  if (it == names_.begin()) return "lathe::" + symbol.str();
  const auto& [kernel, name] = *std::prev(it);
  if (!symbol.starts_with(kernel)) return "lathe::" + symbol.str();
  return name + symbol.drop_front(kernel.size()).str();
}

void PerfMap::modifyPassConfig(llvm::orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&,
                               llvm::jitlink::PassConfiguration& config) {
  config.PostFixupPasses.push_back([this](llvm::jitlink::LinkGraph& graph) {
    std::string lines;
    for (const llvm::jitlink::Symbol* symbol : graph.defined_symbols())
      if (symbol->isCallable() && symbol->hasName() && symbol->getSize() > 0)
        lines += fmt::format("{:x} {:x} {}\n", symbol->getAddress().getValue(), uint64_t{symbol->getSize()},
                             name_of(symbol->getName()));
    if (std::FILE* file = std::fopen(path_.c_str(), "a")) {  // a profile without names is no reason to fail
      std::fwrite(lines.data(), 1, lines.size(), file);
      std::fclose(file);
    }
    return llvm::Error::success();
  });
}

}  // namespace lathe::codegen
