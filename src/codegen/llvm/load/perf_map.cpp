#include "codegen/llvm/load/perf_map.h"

#include <unistd.h>

#include <cstdio>

namespace lathe::codegen {

PerfMap::PerfMap(const std::string& folder, KernelNames names)
    : path_(fmt::format("{}/perf-{}.map", folder, ::getpid())), names_(std::move(names)) {}

void PerfMap::modifyPassConfig(llvm::orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&,
                               llvm::jitlink::PassConfiguration& config) {
  config.PostFixupPasses.push_back([this](llvm::jitlink::LinkGraph& graph) {
    std::string lines;
    for (const llvm::jitlink::Symbol* symbol : graph.defined_symbols())
      if (symbol->isCallable() && symbol->hasName() && symbol->getSize() > 0)
        lines += fmt::format("{:x} {:x} {}\n", symbol->getAddress().getValue(), uint64_t{symbol->getSize()},
                             names_.find(symbol->getName()).value_or("lathe::" + symbol->getName().str()));
    if (std::FILE* file = std::fopen(path_.c_str(), "a")) {  // a profile without names is no reason to fail
      std::fwrite(lines.data(), 1, lines.size(), file);
      std::fclose(file);
    }
    return llvm::Error::success();
  });
}

}  // namespace lathe::codegen
