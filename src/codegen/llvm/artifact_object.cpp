#include "codegen/llvm/artifact_object.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "abi/artifact.h"
#include "codegen/llvm/machine.h"

namespace lathe::codegen {
namespace {

using C = llvm::Constant*;

class Builder {
 public:
  Builder(llvm::Module& module) : module_(module), context_(module.getContext()) {}

  C word32(uint64_t v) { return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context_), v); }
  C word64(uint64_t v) { return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context_), v); }
  C nowhere() { return llvm::ConstantPointerNull::get(llvm::PointerType::get(context_, 0)); }
  C bytes(std::string_view data, uint64_t align) {
    if (data.empty()) data = std::string_view("\0", 1);
    C value = llvm::ConstantDataArray::getString(context_, llvm::StringRef(data.data(), data.size()), false);
    return global(value, align);
  }
  C text(const std::string& s) {
    C& known = texts_[s];
    if (!known) known = global(llvm::ConstantDataArray::getString(context_, s), 1);
    return known;
  }
  C table(llvm::ArrayRef<C> entries, llvm::Type* type) {
    if (entries.empty()) return nowhere();
    return global(llvm::ConstantArray::get(llvm::ArrayType::get(type, entries.size()), entries), 8);
  }
  // Records of pointers: metadata and runtime kernels are pairs of them.
  C pairs(const std::vector<std::pair<C, C>>& rows) {
    auto* pointer = llvm::PointerType::get(context_, 0);
    std::vector<C> flat;
    for (const auto& [a, b] : rows) flat.push_back(a), flat.push_back(b);
    return table(flat, pointer);
  }
  // Something another object defines for this artifact alone.
  C outside(const std::string& symbol, bool is_function) {
    if (llvm::GlobalValue* known = module_.getNamedValue(symbol)) return known;
    llvm::GlobalValue* value;
    if (is_function) {
      auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context_), false);
      value = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module_);
    } else {
      value = new llvm::GlobalVariable(module_, llvm::Type::getInt8Ty(context_), true,
                                       llvm::GlobalValue::ExternalLinkage, nullptr, symbol);
    }
    value->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return value;
  }

 private:
  C global(C value, uint64_t align) {
    auto* g =
        new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, "data");
    g->setAlignment(llvm::Align(align));
    return g;
  }
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  std::map<std::string, C> texts_;
};

std::string joined_features(const target::Target& target) {
  std::string text;
  for (const std::string& feature : target.features) text += (text.empty() ? "" : ",") + feature;
  return text;
}

}  // namespace

support::Result<std::string> artifact_object(const ArtifactContents& contents, const std::string& symbol,
                                             const std::string& weights_symbol, const KernelNames* names) {
  const target::Target& target = contents.kernels->target;
  const auto machine = TRY(make_machine(target));
  llvm::LLVMContext context;
  llvm::Module module("artifact", context);
  describe_module(module, target, *machine);
  module.setPICLevel(llvm::PICLevel::BigPIC);
  Builder b(module);

  std::vector<std::pair<C, C>> metadata, runtime_kernels;
  for (const auto& [key, value] : contents.metadata) metadata.emplace_back(b.text(key), b.text(value));
  std::set<std::string> linked;
  for (const LinkedKernels& each : contents.linked_kernels) linked.insert(each.names.begin(), each.names.end());
  for (const std::string& name : contents.runtime_kernels) {
    std::string symbol = "lathe_kernel_" + name;
    std::replace(symbol.begin(), symbol.end(), '.', '_');
    runtime_kernels.emplace_back(b.text(name), linked.count(name) ? b.outside(symbol, true) : b.nowhere());
  }
  const auto function = [&](const std::string& symbol) {
    return b.outside(names ? names->find(symbol).value_or(symbol) : symbol, true);
  };
  std::vector<C> kernels;
  for (const CompiledKernel& kernel : contents.kernels->kernels) kernels.push_back(function(kernel.symbol));
  std::vector<C> functions;
  if (contents.functions && contents.functions->object)
    for (const std::string& symbol : contents.functions->symbols)
      functions.push_back(symbol.empty() ? b.nowhere() : function(symbol));
  const bool has_weights = contents.weights_bytes > 0;
  const bool external = !contents.weights_file.empty();
  const support::Hash128 hash = content_hash(contents);

  C magic = llvm::ConstantDataArray::getString(context, LATHE_ARTIFACT_MAGIC, false);
  // In the order of LatheArtifact's fields.
  const std::vector<C> fields = {magic,
                                 b.word32(LATHE_ARTIFACT_VERSION),
                                 b.word32(sizeof(LatheArtifact)),
                                 b.word32(LATHE_SERVICES_VERSION),
                                 b.word32(sizeof(LatheServices)),
                                 b.word64(hash.high),
                                 b.word64(hash.low),
                                 b.text(llvm::Triple(target.triple).getArchName().str()),
                                 b.text(joined_features(target)),
                                 b.pairs(metadata),
                                 b.word64(metadata.size()),
                                 b.bytes(contents.program, 8),
                                 b.word64(contents.program.size()),
                                 b.table(kernels, llvm::PointerType::get(context, 0)),
                                 b.word64(kernels.size()),
                                 has_weights && !external ? b.outside(weights_symbol, false) : b.nowhere(),
                                 external ? b.text(contents.weights_file) : b.nowhere(),
                                 b.word64(static_cast<uint64_t>(contents.weights_bytes)),
                                 b.pairs(runtime_kernels),
                                 b.word64(runtime_kernels.size()),
                                 b.table(functions, llvm::PointerType::get(context, 0)),
                                 b.word64(functions.size()),
                                 b.word32(LATHE_PROGRAM_SERVICES_VERSION),
                                 b.word32(sizeof(LatheProgramServices))};
  C artifact = llvm::ConstantStruct::getAnon(context, fields);
  support::require(module.getDataLayout().getTypeAllocSize(artifact->getType()) == sizeof(LatheArtifact),
                   "the artifact's struct and its table of fields differ");
  auto* exported =
      new llvm::GlobalVariable(module, artifact->getType(), true, llvm::GlobalValue::ExternalLinkage, artifact, symbol);
  exported->setAlignment(llvm::Align(8));
  return write_module(module, *machine, EmitKind::object);
}

}  // namespace lathe::codegen
