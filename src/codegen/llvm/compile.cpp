#include "codegen/llvm/compile.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>

#include "codegen/emit/codes.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "ir/codes.h"

namespace lathe::codegen {
namespace {

// Rises when the same kernel would give other code: entries of older compilers are then not found.
constexpr std::string_view compiler_build = "lathe-llvm-2 LLVM " LLVM_VERSION_STRING;

support::Hash128 cache_key(const support::Hash128& content, const target::Target& target) {
  support::Hasher hasher;
  hasher.add(content.high);
  hasher.add(content.low);
  hasher.add(target.str());
  hasher.add(compiler_build);
  return hasher.finish();
}

void verify(llvm::Module& module, const std::string& kernel) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    throw support::InternalError(fmt::format("kernel '{}' became invalid LLVM IR: {}", kernel, problem));
}

void build_module(llvm::Module& module, const Kernel& kernel, const target::Target& target,
                  llvm::TargetMachine& machine, const std::string& symbol) {
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine.createDataLayout());
  KernelEmitter(module, kernel, target, symbol).emit();
  verify(module, kernel.name);
  optimise(module, machine);
}

std::string compile_one(const Kernel& kernel, const target::Target& target, llvm::TargetMachine& machine,
                        const std::string& symbol) {
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  llvm::Module module("kernel", context);
  build_module(module, kernel, target, machine, symbol);
  return write_module(module, machine, EmitKind::object);
}

support::Status check_all(const std::vector<Kernel>& kernels) {
  support::Diagnostics problems;
  for (const Kernel& kernel : kernels)
    for (support::Diagnostic& d : check_kernel(kernel)) problems.push_back(std::move(d));
  if (!problems.empty()) return problems;
  return support::success();
}

// One piece of work: the first kernel of its content.
struct Job {
  const Kernel* kernel;
  support::Hash128 key;
  std::string symbol;
  std::shared_ptr<const std::string> object;
  bool from_cache = false;
};

// Each thread takes the next job; every job has a context and module of its own, so no order shows in the result.
// False when it was cancelled before the last.
bool run_jobs(std::vector<Job>& jobs, const target::Target& target, const CompileOptions& options) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  bool stopped = false;
  const auto work = [&](bool asks) {
    try {
      const auto machine = make_machine(target).value_or_throw();
      for (size_t j = next++; j < jobs.size(); j = next++) {
        if (asks && options.cancelled && options.cancelled()) {
          stopped = true;
          next = jobs.size();
          return;
        }
        Job& job = jobs[j];
        if (!job.object)
          job.object = std::make_shared<const std::string>(compile_one(*job.kernel, target, *machine, job.symbol));
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = jobs.size();
    }
  };
  std::vector<std::thread> others;
  const size_t wanted = std::min<size_t>(static_cast<size_t>(std::max(1, options.threads)), jobs.size());
  for (size_t t = 1; t < wanted; ++t) others.emplace_back(work, false);
  if (wanted > 0) work(true);
  for (std::thread& t : others) t.join();
  if (failure) std::rethrow_exception(failure);
  return !stopped;
}

}  // namespace

support::Result<CompiledKernels> compile_kernels(const std::vector<Kernel>& kernels, const target::Target& target,
                                                 const CompileOptions& options) {
  TRY(check_all(kernels));
  TRY(make_machine(target));
  std::vector<Job> jobs;
  std::unordered_map<support::Hash128, size_t> job_of_content;
  std::vector<size_t> job_of_kernel;
  for (const Kernel& kernel : kernels) {
    const support::Hash128 content = kernel_hash(kernel);
    const auto [it, is_new] = job_of_content.try_emplace(content, jobs.size());
    job_of_kernel.push_back(it->second);
    if (!is_new) continue;
    Job job{.kernel = &kernel,
            .key = cache_key(content, target),
            .symbol = "lathe_kernel_" + content.hex(),
            .object = nullptr};
    if (options.cache) job.object = options.cache->find(job.key);
    job.from_cache = job.object != nullptr;
    jobs.push_back(std::move(job));
  }
  std::vector<Job> missing;
  for (const Job& job : jobs)
    if (!job.object) missing.push_back(job);
  const bool done_all =
      TRY(support::catch_diagnostics([&]() -> support::Result<bool> { return run_jobs(missing, target, options); }));
  if (!done_all)
    return support::Diagnostic{.code = ir::codes::cancelled, .message = "stopped by the user while code was generated"};
  size_t done = 0;
  for (Job& job : jobs) {
    if (job.object) continue;
    job.object = missing[done++].object;
    if (options.cache) options.cache->insert(job.key, job.object);
  }
  CompiledKernels result{.target = target, .kernels = {}};
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Job& job = jobs[job_of_kernel[k]];
    result.kernels.push_back({kernels[k].name, job.symbol, job.object, job.from_cache});
  }
  return result;
}

support::Result<std::string> emit_llvm(const std::vector<Kernel>& kernels, const target::Target& target,
                                       const EmitOptions& options) {
  TRY(check_all(kernels));
  const auto machine = TRY(make_machine(target));
  llvm::LLVMContext context;
  llvm::Module all("kernels", context);
  all.setTargetTriple(target.triple);
  all.setDataLayout(machine->createDataLayout());
  for (const Kernel& kernel : kernels) {
    auto module = std::make_unique<llvm::Module>(kernel.name, context);
    TRY(support::catch_diagnostics([&]() -> support::Status {
      build_module(*module, kernel, target, *machine, kernel.name);
      return support::success();
    }));
    const bool failed = llvm::Linker::linkModules(all, std::move(module));
    support::require(!failed, "kernels of one name cannot be printed together");
  }
  return write_module(all, *machine, options.kind);
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace lathe::codegen
