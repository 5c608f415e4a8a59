#include "codegen/llvm/compile.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>

#include "codegen/emit/codes.h"
#include "codegen/llvm/code_generator_sum.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "ir/codes.h"
#include "ir/visit.h"
#include "support/parallel.h"

namespace lathe::codegen {
namespace {

constexpr size_t brief_kernels_an_object = 8;

void verify(llvm::Module& module, const std::string& kernel) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    throw support::InternalError(fmt::format("kernel '{}' became invalid LLVM IR: {}", kernel, problem));
}

support::Status check_all(const std::vector<Kernel>& kernels, int threads) {
  std::vector<support::Diagnostics> found(kernels.size());
  support::parallel_for(kernels.size(), threads, [&](size_t k) { found[k] = check_kernel(kernels[k], "llvm"); });
  support::Diagnostics problems;
  for (support::Diagnostics& of_kernel : found)
    for (support::Diagnostic& d : of_kernel) problems.push_back(std::move(d));
  if (!problems.empty()) return problems;
  return support::success();
}

// One kernel of those with equal content.
struct Content {
  const Kernel* kernel;
  support::Hash128 hash;
  std::string symbol;
};

// One piece of work: an object.
struct Job {
  std::vector<size_t> contents;
  Effort effort;
  support::Hash128 key;
  std::shared_ptr<const std::string> object;
  bool from_cache = false;
};

support::Hash128 cache_key(const Job& job, const std::vector<Content>& contents, const target::Target& target) {
  support::Hasher hasher;
  for (const size_t c : job.contents) {
    hasher.add(contents[c].hash.high);
    hasher.add(contents[c].hash.low);
  }
  if (job.effort != Effort::full) hasher.add("brief");
  hasher.add(target.str());
  // Entries of another compiler are not found.
  hasher.add(code_generator_sum);
  hasher.add("LLVM " LLVM_VERSION_STRING);
  return hasher.finish();
}

std::string compile_job(const Job& job, const std::vector<Content>& contents, const target::Target& target,
                        llvm::TargetMachine& machine, const KernelText* text) {
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  llvm::Module module("kernel", context);
  describe_module(module, target, machine);
  std::optional<DebugLines> lines;
  if (text) lines.emplace(module, *text);
  for (const size_t c : job.contents)
    KernelEmitter(module, *contents[c].kernel, target, contents[c].symbol, lines ? &*lines : nullptr).emit();
  if (lines) lines->finish();
  verify(module, contents[job.contents[0]].kernel->name);
  optimise(module, machine, job.effort);
  return write_module(module, machine, EmitKind::object);
}

// The first kernel of each content, and for each kernel the number of its content.
std::pair<std::vector<Content>, std::vector<size_t>> contents_of(const std::vector<Kernel>& kernels, int threads) {
  std::vector<support::Hash128> hashes(kernels.size());
  support::parallel_for(kernels.size(), threads, [&](size_t k) { hashes[k] = kernel_hash(kernels[k]); });
  std::vector<Content> contents;
  std::vector<size_t> content_of_kernel;
  std::unordered_map<support::Hash128, size_t> known;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto [it, is_new] = known.try_emplace(hashes[k], contents.size());
    content_of_kernel.push_back(it->second);
    if (is_new) contents.push_back({&kernels[k], hashes[k], ""});
  }
  return {std::move(contents), std::move(content_of_kernel)};
}

// Names the contents' symbols, and divides them up; which kernels share an object depends on the kernels alone.
std::vector<Job> jobs_of(std::vector<Content>& contents, const target::Target& target, const CompileOptions& options) {
  std::vector<const Kernel*> distinct;
  distinct.reserve(contents.size());
  for (const Content& content : contents) distinct.push_back(content.kernel);
  const std::vector<Effort> efforts = efforts_of(distinct, options.most_full);
  std::vector<Job> jobs;
  std::optional<size_t> open;  // the job that takes the next brief kernel
  for (size_t c = 0; c < contents.size(); ++c) {
    const bool full = efforts[c] == Effort::full;
    contents[c].symbol = (full ? "lathe_kernel_" : "lathe_brief_kernel_") + contents[c].hash.hex();
    if (!full && open && jobs[*open].contents.size() < brief_kernels_an_object) {
      jobs[*open].contents.push_back(c);
      continue;
    }
    if (!full) open = jobs.size();
    jobs.push_back({.contents = {c}, .effort = efforts[c], .key = {}, .object = nullptr});
  }
  for (Job& job : jobs) {
    job.key = cache_key(job, contents, target);
    if (options.cache && !options.text) job.object = options.cache->find(job.key);
    job.from_cache = job.object != nullptr;
  }
  return jobs;
}

// Those that take longest first, so that threads end together.
void sort_by_size(std::vector<Job*>& jobs, const std::vector<Content>& contents) {
  std::vector<std::pair<size_t, Job*>> sized;
  for (Job* job : jobs) {
    size_t nodes = 0;
    for (const size_t c : job->contents)
      ir::pre_order(contents[c].kernel->function->body, [&](const ir::NodeRef&) { return ++nodes > 0; });
    sized.emplace_back(job->effort == Effort::full ? nodes : nodes / 4, job);
  }
  std::stable_sort(sized.begin(), sized.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t j = 0; j < jobs.size(); ++j) jobs[j] = sized[j].second;
}

// Each thread takes the next job; every job has a context and module of its own, so no order shows in the result.
// False when it was cancelled before the last.
bool run_jobs(const std::vector<Job*>& jobs, const std::vector<Content>& contents, const target::Target& target,
              const CompileOptions& options) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  bool stopped = false;
  const auto work = [&](bool asks) {
    try {
      std::map<Effort, std::unique_ptr<llvm::TargetMachine>> machines;
      for (size_t j = next++; j < jobs.size(); j = next++) {
        if (asks && options.cancelled && options.cancelled()) {
          stopped = true;
          next = jobs.size();
          return;
        }
        Job& job = *jobs[j];
        auto& machine = machines[job.effort];
        if (!machine) machine = make_machine(target, job.effort).value_or_throw();
        job.object = std::make_shared<const std::string>(compile_job(job, contents, target, *machine, options.text));
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
  TRY(check_all(kernels, options.threads));
  TRY(make_machine(target));
  auto [contents, content_of_kernel] = contents_of(kernels, options.threads);
  std::vector<Job> jobs = jobs_of(contents, target, options);
  std::vector<Job*> missing;
  for (Job& job : jobs)
    if (!job.object) missing.push_back(&job);
  if (options.threads > 1) sort_by_size(missing, contents);
  const bool done_all = TRY(support::catch_diagnostics(
      [&]() -> support::Result<bool> { return run_jobs(missing, contents, target, options); }));
  if (!done_all)
    return support::Diagnostic{.code = ir::codes::cancelled, .message = "stopped by the user while code was generated"};
  if (options.cache && !options.text)
    for (const Job* job : missing) options.cache->insert(job->key, job->object);
  std::vector<const Job*> job_of_content(contents.size());
  for (const Job& job : jobs)
    for (const size_t c : job.contents) job_of_content[c] = &job;
  CompiledKernels result{.target = target, .kernels = {}};
  for (size_t k = 0; k < kernels.size(); ++k) {
    const size_t c = content_of_kernel[k];
    const Job& job = *job_of_content[c];
    result.kernels.push_back({kernels[k].name, contents[c].symbol, job.object, job.from_cache});
  }
  return result;
}

support::Result<std::string> emit_llvm(const std::vector<Kernel>& kernels, const target::Target& target,
                                       const EmitOptions& options) {
  TRY(check_all(kernels, options.threads));
  const auto machine = TRY(make_machine(target));
  llvm::LLVMContext context;
  llvm::Module all("kernels", context);
  describe_module(all, target, *machine);
  for (const Kernel& kernel : kernels) {
    auto module = std::make_unique<llvm::Module>(kernel.name, context);
    TRY(support::catch_diagnostics([&]() -> support::Status {
      describe_module(*module, target, *machine);
      KernelEmitter(*module, kernel, target, kernel.name).emit();
      verify(*module, kernel.name);
      optimise(*module, *machine);
      return support::success();
    }));
    const bool failed = llvm::Linker::linkModules(all, std::move(module));
    support::require(!failed, "kernels of one name cannot be printed together");
  }
  machine->Options.MCOptions.AsmVerbose = options.comments;
  return write_module(all, *machine, options.kind);
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace lathe::codegen
