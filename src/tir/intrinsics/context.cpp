#include "tir/intrinsics/context.h"

#include "ir/structural.h"
#include "ir/visit.h"
#include "tir/analysis/regions.h"
#include "tir/codes.h"
#include "tir/intrinsics/library.h"

namespace lathe::tir {

namespace {

support::Diagnostic no_intrin(const std::string& name, const std::string& why) {
  return {.code = codes::tensor_intrin,
          .message = fmt::format("the intrinsic '{}' cannot be registered: {}", name, why)};
}

std::string shape_text(const Buffer& buffer) {
  std::string text;
  for (const Expr& extent : buffer->shape) {
    const auto known = as_int(extent);
    const auto* symbol = extent.as<VarNode>();
    text += (text.empty() ? "" : ", ") + (known ? std::to_string(*known) : symbol ? symbol->name : "…");
  }
  return fmt::format("{}[{}] in scope '{}'", buffer->dtype.str(), text, buffer->scope);
}

bool same_kind(const Buffer& a, const Buffer& b) {
  if (a->dtype != b->dtype || a->scope != b->scope || a->shape.size() != b->shape.size()) return false;
  for (size_t d = 0; d < a->shape.size(); ++d)
    if (!structural_equal(a->shape[d], b->shape[d], true)) return false;
  return true;
}

// What keeps a description from being run, or compared with a program.
std::optional<std::string> not_plain(const Function& description) {
  std::optional<std::string> found;
  post_order(description->body, [&](const NodeRef& n) {
    if (const auto* call = n.as<Call>(); call && (call->op->effect != Effect::pure || call->op->arity < 0))
      found = fmt::format("its description calls '{}'", call->op->name);
    if (const auto* block = n.as<Block>(); block && !(block->alloc_buffers.empty() && block->match_buffers.empty()))
      found = fmt::format("block '{}' of its description has buffers of its own", block->name);
    if (n.is<Allocate>() || n.is<DeclBuffer>() || n.is<AllocateConst>() || n.is<While>())
      found = "its description allocates or repeats without a bound";
  });
  return found;
}

bool has_views(const Function& function) {
  bool found = false;
  post_order(function->body, [&](const NodeRef& n) {
    const auto* block = n.as<Block>();
    found = found || (block && !block->match_buffers.empty());
  });
  return found;
}

}  // namespace

const std::string* tensor_intrin_of(const Block& block) {
  return block.annotations.get<std::string>(tensor_intrin_key);
}

const Stmt& intrin_body(const PrimFunc& function) {
  const BlockRealize* root = root_of(function);
  return root ? root->block->body : function.body;
}

support::Status check_tensor_intrin(const std::string& name, const TensorIntrin& intrin) {
  const PrimFunc &description = *intrin.description, &implementation = *intrin.implementation;
  for (const PrimFunc* f : {&description, &implementation})
    if (f->buffer_map.size() != f->params.size()) return no_intrin(name, "its functions take buffers and nothing else");
  if (description.params.size() != implementation.params.size())
    return no_intrin(name, fmt::format("its description has {} buffers and its implementation {}",
                                       description.params.size(), implementation.params.size()));
  for (size_t i = 0; i < description.buffer_map.size(); ++i) {
    const Buffer &a = description.buffer_map[i].second, &b = implementation.buffer_map[i].second;
    if (!same_kind(a, b))
      return no_intrin(name, fmt::format("buffer {} is {} in its description and {} in its implementation", i,
                                         shape_text(a), shape_text(b)));
  }
  if (const auto why = not_plain(intrin.description)) return no_intrin(name, *why);
  if (has_views(intrin.implementation)) return no_intrin(name, "its implementation has views of its buffers");
  const auto written = access_regions(intrin_body(description)).writes;
  const auto stored = access_regions(intrin_body(implementation)).writes;
  for (size_t i = 0; i < description.buffer_map.size(); ++i) {
    const auto has = [](const std::vector<BufferRegion>& list, const Buffer& buffer) {
      return std::any_of(list.begin(), list.end(), [&](const BufferRegion& r) { return r->buffer == buffer; });
    };
    if (has(stored, implementation.buffer_map[i].second) && !has(written, description.buffer_map[i].second))
      return no_intrin(name, fmt::format("its implementation writes '{}', which its description only reads",
                                         implementation.buffer_map[i].second->name));
  }
  return support::success();
}

support::Status Context::add(const std::string& name, TensorIntrin intrin, bool replace) {
  TRY(check_tensor_intrin(name, intrin));
  const std::lock_guard lock(mutex_);
  if (!replace && (intrins_.count(name) || library_intrin(name)))
    return no_intrin(name, "there is one of that name already");
  intrins_[name] = std::move(intrin);
  return support::success();
}

std::optional<TensorIntrin> Context::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = intrins_.find(name);
  return it == intrins_.end() ? library_intrin(name) : it->second;
}

std::vector<std::string> Context::names() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> all;
  for (const std::string& name : library_intrin_names()) all.insert(name);
  for (const auto& [name, intrin] : intrins_) all.insert(name);
  return {all.begin(), all.end()};
}

void Context::set_function(const std::string& name, RegisteredFunction function) {
  const std::lock_guard lock(mutex_);
  functions_[name] = std::move(function);
}

bool Context::remove_function(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return functions_.erase(name) > 0;
}

RegisteredFunction Context::find_function(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = functions_.find(name);
  return it == functions_.end() ? RegisteredFunction() : it->second;
}

std::vector<std::string> Context::function_names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, function] : functions_) names.push_back(name);
  return names;
}

void call_registered(const Context* context, const std::string& name, std::span<const LathePassed> arguments,
                     LathePassed& result) {
  const RegisteredFunction function = context ? context->find_function(name) : RegisteredFunction();
  if (!function)
    throw support::DiagnosticError(
        support::Diagnostic{.code = codes::wrong_call, .message = "there is no registered function '" + name + "'"});
  function(arguments, result);
}

}  // namespace lathe::tir
