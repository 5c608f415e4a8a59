#include "driver/functions.h"

#include <dlfcn.h>

#include <mutex>

#include "abi/artifact.h"
#include "abi/call_kernel.h"
#include "codegen/emit/backends.h"
#include "codegen/llvm/link.h"
#include "codegen/llvm/load/jit.h"
#include "driver/artifact/debug_text.h"
#include "driver/artifact/metadata.h"
#include "driver/codes.h"
#include "driver/interpret_call.h"
#include "driver/pipeline.h"
#include "driver/print.h"
#include "driver/report/fail_on_request.h"
#include "driver/verify_module.h"
#include "ir/visit.h"
#include "runtime/core/call_state.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/thread_count.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/passes/passes.h"
#include "tir/script/dialect.h"

namespace lathe::driver {

using ir::Expr;
using ir::Var;
using support::Diagnostic;
using support::Result;
using support::Status;

// ---- what a function takes ----

namespace {

// The handle's parameters that the function stores into, by their number.
std::vector<bool> written_parameters(const tir::PrimFunc& function) {
  std::unordered_set<const ir::Node*> stored;  // addresses
  ir::pre_order(function.body, [&](const ir::NodeRef& n) {
    if (const auto* store = n.as<tir::BufferStore>()) stored.insert(store->buffer->data.get());
    if (const auto* view = n.as<tir::MatchBufferRegionNode>())
      if (stored.count(view->buffer->data.get())) stored.insert(view->source->buffer->data.get());
    // What an opaque call may do to an address that it is given is not known.
    if (const auto* call = n.as<ir::Call>(); call && call->op->effect == ir::Effect::updates)
      for (const Expr& arg : call->args) {
        stored.insert(arg.get());
        ir::pre_order(arg, [&](const ir::NodeRef& inside) {
          if (const auto* address = inside.as<ir::Call>(); address && address->op == &ir::intrinsic::address_of)
            if (const auto* load = address->args[0].as<ir::BufferLoad>()) stored.insert(load->buffer->data.get());
          return true;
        });
      }
    return true;
  });
  // A view is met before the stores through it: a second look finds those.
  ir::pre_order(function.body, [&](const ir::NodeRef& n) {
    if (const auto* view = n.as<tir::MatchBufferRegionNode>(); view && stored.count(view->buffer->data.get()))
      stored.insert(view->source->buffer->data.get());
    return true;
  });
  std::vector<bool> written;
  for (const Var& param : function.params) {
    const ir::Buffer buffer = function.buffer_of(param);
    written.push_back(buffer && (stored.count(buffer->data.get()) || stored.count(param.get())));
  }
  return written;
}

FunctionSignature signature_of_function(const std::string& name, const tir::Function& function) {
  return {name, ir::with(*function, [](tir::PrimFunc& copy) { copy.body = tir::nop(); }),
          written_parameters(*function)};
}

// The value of a scalar, given as the int64 of the kernel's table.
Expr from_plain(const Var& given, ir::DType dtype) {
  if (dtype == ir::DType::float_(64)) return ir::call(dtype, ir::intrinsic::reinterpret, {given});
  if (dtype.is_floating()) return ir::cast(dtype, ir::call(ir::DType::float_(64), ir::intrinsic::reinterpret, {given}));
  return ir::cast(dtype, given);
}

// The function as code generation takes its parameters: handles first, then int64 scalars, from which those of other
// types are converted.
struct PlainFunction {
  tir::Function function;
  std::vector<ScalarSource> scalars;  // where the kernel's table of scalars comes from, in its order
};

PlainFunction with_plain_scalars(const tir::Function& declared) {
  std::vector<Var> handles, scalars;
  PlainFunction plain;
  ir::VarMap converted;
  const auto add = [&](const Var& wanted, ScalarSource source) {
    const bool as_it_is = wanted->dtype == ir::DType::int64();
    scalars.push_back(as_it_is ? wanted : ir::var(wanted->name));
    if (!as_it_is) converted[wanted] = from_plain(scalars.back(), wanted->dtype);
    plain.scalars.push_back(std::move(source));
  };
  for (size_t i = 0; i < declared->params.size(); ++i) {
    const Var& param = declared->params[i];
    if (param->dtype.is_handle())
      handles.push_back(param);
    else
      add(param, {.parameter = i, .dtype = param->dtype});
  }
  for (const Var& symbol : tir::shape_scalars(declared)) add(symbol, {.symbol = symbol, .dtype = symbol->dtype});
  tir::Function changed = ir::with(*declared, [&](tir::PrimFunc& copy) { copy.params = handles; });
  if (!converted.empty()) changed = ir::cast<tir::PrimFunc>(ir::substitute(ir::NodeRef(changed), converted));
  handles.insert(handles.end(), scalars.begin(), scalars.end());
  plain.function = ir::with(*changed, [&](tir::PrimFunc& copy) { copy.params = handles; });
  return plain;
}

}  // namespace

// ---- compiling ----

namespace {

Status only_tensor_functions(const ir::IRModule& module) {
  if (module.size() == 0)
    return Diagnostic{.code = codes::not_tensor_functions, .message = "the module has no function to build"};
  for (const auto& [name, function] : module)
    if (!function.is<tir::PrimFunc>())
      return Diagnostic{.code = codes::not_tensor_functions,
                        .message = "'" + name + "' is a graph function; only tensor functions are built one by one",
                        .help = "lathe.compile compiles a module with a graph"};
  return support::success();
}

}  // namespace

const FunctionSignature* BuiltFunctions::find(const std::string& name) const {
  for (const FunctionSignature& signature : signatures_)
    if (signature.name == name) return &signature;
  return nullptr;
}

Result<BuiltFunctionsRef> BuiltFunctions::build(ir::IRModule module, const CompileOptions& options) {
  return support::catch_diagnostics([&]() -> Result<BuiltFunctionsRef> {
    TRY(only_tensor_functions(module));
    if (support::Diagnostics found = verify_module(module, {}); !found.empty()) return found;
    std::shared_ptr<BuiltFunctions> built(new BuiltFunctions);
    built->target_ = options.target;
    // Before parameters become those of kernels, which calls do not give.
    const ir::IRModule inlined = TRY(tir::inline_calls(module, {}));
    ir::IRModule plain;
    for (const auto& [name, function] : inlined) {
      const auto declared = ir::cast<tir::PrimFunc>(function);
      built->signatures_.push_back(signature_of_function(name, declared));
      PlainFunction made = with_plain_scalars(declared);
      plain.set(name, made.function);
      built->entries_.push_back({nullptr, std::move(made.scalars)});
    }
    built->context_ = options.context;
    if (options.target.kind == "interp") {
      built->lowered_ = std::move(module);
      return BuiltFunctionsRef(built);
    }
    ir::PassContext context;
    context.disabled = options.disabled_passes;
    context.verify = options.verify;
    context.cancelled = options.cancelled;
    built->lowered_ = TRY(ir::run_passes(std::move(plain), kernel_rows(), context, verify_module));
    std::vector<codegen::Kernel> kernels;
    for (const FunctionSignature& signature : built->signatures_) {
      kernels.push_back({signature.name, built->lowered_.find_as<tir::PrimFunc>(signature.name)});
    }
    const auto text = TRY(write_debug_text(kernels, options.debug_text));
    const codegen::CompileOptions codegen{
        .threads = std::max(1, options.compile_threads), .cache = options.cache, .text = text ? &*text : nullptr};
    built->kernels_ = TRY(codegen::compile_kernels(kernels, options.target, codegen));
    const auto loaded = TRY(codegen::load_kernels(built->kernels_));
    for (size_t i = 0; i < kernels.size(); ++i) built->entries_[i].kernel = loaded->functions()[i];
    built->keeps_ = loaded;
    return BuiltFunctionsRef(built);
  });
}

// ---- calling ----

namespace {

// What a kernel calls of the user's, and the first error that came of it: it goes to whoever called the kernel.
struct RegisteredCalls {
  const tir::Context* context;
  std::mutex mutex;
  std::exception_ptr thrown;

  static int32_t call(void* owner, const char* name, const LathePassed* arguments, int32_t count, LathePassed* result,
                      const char** error) {
    auto& self = *static_cast<RegisteredCalls*>(owner);
    try {
      tir::call_registered(self.context, name, {arguments, static_cast<size_t>(count)}, *result);
      return 0;
    } catch (...) {
      const std::lock_guard lock(self.mutex);
      if (!self.thrown) self.thrown = std::current_exception();
      *error = "a registered function raised an error";
      return 1;
    }
  }
};

}  // namespace

// A call ready to run, again and again.
struct BuiltFunctions::Call {
  LatheKernel kernel = nullptr;  // null: `interpreted` runs instead
  std::function<Status()> interpreted;
  std::string name;
  std::vector<void*> buffers;
  std::vector<int64_t> scalars;
  int threads = 1;
  const tir::Context* context = nullptr;

  Status run() const {
    return support::catch_diagnostics([&] { return interpreted ? interpreted() : run_kernel(); });
  }

  Status run_kernel() const {
    RegisteredCalls registered{.context = context, .mutex = {}, .thrown = {}};
    runtime::Profiler profiler{};
    runtime::CallState state{};
    state.profiler = &profiler;
    state.threads = threads;
    state.float_control = runtime::float_control(false);
    state.registered = RegisteredCalls::call;
    state.owner = &registered;
    state.begin_run();
    int32_t status = 0;
    {
      const runtime::FloatModeScope mode(state.float_control);
      status = abi::call_kernel(kernel, &runtime::services, &state, buffers.data(), scalars.data());
    }
    state.end_run();
    if (registered.thrown) std::rethrow_exception(registered.thrown);
    if (status == 0 && state.error_code.load() == 0) return support::success();
    const std::string message = *state.message ? state.message : fmt::format("'{}' failed with {}", name, status);
    Diagnostic failed{.code = codes::runtime, .message = message};
    if (*state.node) failed.note(std::string("raised at ") + state.node);
    return failed;
  }
};

Result<BuiltFunctions::Call> BuiltFunctions::prepare(const std::string& name, const std::vector<Argument>& arguments,
                                                     int threads) const {
  const FunctionSignature* signature = find(name);
  if (!signature) {
    std::string names;
    for (const FunctionSignature& s : signatures_) names += (names.empty() ? "'" : ", '") + s.name + "'";
    return Diagnostic{.code = codes::input_name, .message = "there is no function '" + name + "', only " + names};
  }
  const Entry& entry = entries_[static_cast<size_t>(signature - signatures_.data())];
  BoundArguments bound = TRY(bind_arguments(*signature, arguments, entry.scalars));
  std::function<Status()> interpreted;
  if (!entry.kernel)
    interpreted = [=, this] { return interpret_call(*signature, lowered_, arguments, context_.get()); };
  return Call{entry.kernel,
              interpreted,
              name,
              std::move(bound.addresses),
              std::move(bound.scalars),
              runtime::choose_thread_count(threads),
              context_.get()};
}

Status BuiltFunctions::call(const std::string& name, const std::vector<Argument>& arguments, int threads) const {
  const Call call = TRY(prepare(name, arguments, threads));
  fail_on_request("run");
  return call.run();
}

Result<std::vector<double>> BuiltFunctions::time(const std::string& name, const std::vector<Argument>& arguments,
                                                 const Timing& timing) const {
  using Clock = std::chrono::steady_clock;
  const Call call = TRY(prepare(name, arguments, timing.threads));
  fail_on_request("run");
  TRY(call.run());  // the first run pages the memory in
  std::vector<char> flushed(static_cast<size_t>(std::max<int64_t>(0, timing.flush_bytes)));
  int64_t number = std::max(1, timing.number);
  std::vector<double> seconds;
  while (seconds.size() < static_cast<size_t>(std::max(0, timing.repeat))) {
    for (size_t at = 0; at < flushed.size(); at += 64) flushed[at] = static_cast<char>(flushed[at] + 1);
    const auto start = Clock::now();
    for (int64_t i = 0; i < number; ++i) TRY(call.run());
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (took < timing.min_repeat_seconds && number < (int64_t{1} << 40)) {
      const double wanted = timing.min_repeat_seconds / std::max(took, 1e-9) * static_cast<double>(number);
      number = std::max(number * 2, static_cast<int64_t>(std::min(wanted * 1.1, 1e12)) + 1);
      continue;
    }
    seconds.push_back(took / static_cast<double>(number));
  }
  return seconds;
}

// ---- text and files ----

Result<std::string> BuiltFunctions::source(const std::string& form) const {
  if (lowered_.size() == 0)
    return Diagnostic{.code = codes::no_code, .message = "a library that was opened has no source any more"};
  if (form == "tir") return print(lowered_);
  if (kernels_.kernels.empty())
    return Diagnostic{.code = codes::no_code, .message = "the target 'interp' has no code, only its program"};
  const bool assembly = form == "s" || form == "asm";
  if (!assembly && form != "ll" && form != "llvm")
    return Diagnostic{.code = codes::unknown_form,
                      .message = "there is no source in the form '" + form + "'",
                      .help = "forms are ll, s (or asm) and tir"};
  std::vector<codegen::Kernel> kernels;
  for (const FunctionSignature& signature : signatures_)
    kernels.push_back({signature.name, lowered_.find_as<tir::PrimFunc>(signature.name)});
  const codegen::Backend* backend = codegen::find_backend(target_.kind);
  support::require(backend, "functions were built for a target without a backend");
  return backend->emit(kernels, target_, {.kind = assembly ? codegen::EmitKind::assembly : codegen::EmitKind::llvm_ir});
}

namespace {

constexpr const char* signature_key = "tensor_functions";

const script::Dialect* const signature_dialects[] = {&tir::script_dialect()};

// The signatures as a script: functions without a body, and what they write as an attribute.
std::string signature_text(const std::vector<FunctionSignature>& signatures) {
  ir::IRModule module;
  for (const FunctionSignature& signature : signatures) {
    ir::Value::List written;
    for (const bool w : signature.is_written) written.emplace_back(w);
    module.set(signature.name, ir::with(*signature.declared, [&](tir::PrimFunc& copy) {
                 copy.attrs = ir::Attributes{{"written", ir::Value(written)}};
               }));
  }
  return script::print(module, {}, signature_dialects);
}

Diagnostic cannot_open(const std::string& path, const std::string& why) {
  return {.code = codes::cannot_open, .message = path + ": " + why};
}

}  // namespace

Status BuiltFunctions::save(const std::string& path) const {
  if (lowered_.size() == 0)
    return Diagnostic{.code = codes::no_code, .message = "a library that was opened is not saved again; copy it"};
  if (kernels_.kernels.empty())
    return Diagnostic{.code = codes::no_code, .message = "the target 'interp' runs in process and is not saved"};
  TRY(nothing_registered(lowered_));
  CompiledModel model;
  model.target = target_;
  codegen::ArtifactContents contents;
  contents.kernels = &kernels_;
  contents.metadata = metadata_of(model);
  contents.metadata[signature_key] = signature_text(signatures_);
  return codegen::link_artifact(contents, {.form = codegen::ArtifactForm::shared_library, .prefix = ""}, path);
}

Result<BuiltFunctionsRef> BuiltFunctions::open(const std::string& path) {
  std::error_code failure;
  const std::string absolute = std::filesystem::absolute(path, failure).string();
  if (failure) return cannot_open(path, failure.message());
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return cannot_open(path, dlerror());
  std::shared_ptr<BuiltFunctions> built(new BuiltFunctions);
  built->keeps_ = std::shared_ptr<const void>(library, [](const void* l) { dlclose(const_cast<void*>(l)); });
  const auto* artifact = static_cast<const LatheArtifact*>(dlsym(library, LATHE_ARTIFACT_SYMBOL));
  if (!artifact || std::memcmp(artifact->magic, LATHE_ARTIFACT_MAGIC, sizeof(artifact->magic)) != 0)
    return cannot_open(path, "this is no library of Lathe's");
  if (artifact->version != LATHE_ARTIFACT_VERSION) return cannot_open(path, "it was made by another version of Lathe");
  char missing[64];
  if (runtime::find_missing_feature(artifact->cpu_features, missing, sizeof(missing)))
    return cannot_open(path, fmt::format("it needs {}, which this machine lacks", missing));
  std::string text;
  for (uint64_t i = 0; i < artifact->metadata_count; ++i)
    if (std::string_view(artifact->metadata[i].key) == signature_key) text = artifact->metadata[i].value;
  if (text.empty()) return cannot_open(path, "it holds a whole model, not tensor functions; lathe.load opens it");
  const ir::IRModule module = TRY(script::parse({path, text}, signature_dialects));
  if (module.size() != artifact->kernel_count) return cannot_open(path, "it is damaged");
  for (size_t i = 0; i < module.size(); ++i) {
    const auto& [name, function] = module.functions()[i];
    const auto declared = ir::cast<tir::PrimFunc>(function);
    FunctionSignature signature{name, declared, {}};
    if (const auto* written = declared->attrs.get<ir::Value::List>("written"))
      for (const ir::Value& w : *written) signature.is_written.push_back(w.get<bool>() && *w.get<bool>());
    signature.is_written.resize(declared->params.size(), true);
    Entry entry{artifact->kernels[i], with_plain_scalars(declared).scalars};
    built->signatures_.push_back(std::move(signature));
    built->entries_.push_back(std::move(entry));
  }
  return BuiltFunctionsRef(built);
}

}  // namespace lathe::driver
