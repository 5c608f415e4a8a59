#include "tir/analysis/verify_memory.h"

#include "ir/visit.h"
#include "tir/analysis/effects.h"

namespace lathe::tir {
namespace {

constexpr std::array gpu_kinds = {"cuda", "nvptx", "rocm", "opencl", "metal", "vulkan", "webgpu", "opengl"};
constexpr int64_t device_kernel_launch = 2;  // the calling convention of a kernel that was split off its host

// The kind in a target's text: its first word, or what stands at "kind" of a JSON object.
std::string_view kind_in(std::string_view text) {
  if (const size_t key = text.find("\"kind\""); text.starts_with('{') && key != std::string_view::npos) {
    const size_t begin = text.find('"', text.find(':', key));
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin + 1);
    return text.substr(0, text.find('"'));
  }
  return text.substr(0, text.find(' '));
}

class HostCode {
 public:
  explicit HostCode(const PrimFunc& function) {
    for (const auto& [param, buffer] : function.buffer_map) parameters_.insert(buffer->data.get());
  }

  // Whether nothing under the node touches device memory where the host runs.
  bool is_legal(const NodeRef& node) const {
    if (!node || node->node_class().has_identity || node.is<BufferRegionNode>()) return true;
    if (const auto* loop = node.as<For>(); loop && is_thread(*loop))
      return is_legal(loop->min) && is_legal(loop->extent);
    if (const auto* attribute = node.as<AttrStmt>(); attribute && attribute->key == "thread_extent")
      return is_legal(attribute->value);
    if (const auto* load = node.as<BufferLoad>(); load && is_on_device(*load->buffer)) return false;
    if (const auto* store = node.as<BufferStore>(); store && is_on_device(*store->buffer)) return false;
    if (const auto* call = node.as<Call>()) {
      if (is_hint(*call)) return true;
      const auto* element = call->op == &intrinsic::address_of ? call->args[0].as<BufferLoad>() : nullptr;
      if (element)
        return std::all_of(element->indices.begin(), element->indices.end(),
                           [&](const Expr& index) { return is_legal(index); });
    }
    bool legal = true;
    node->node_class().for_each_child(*node, [&](const NodeRef& child) { legal = legal && is_legal(child); });
    return legal;
  }

 private:
  static bool is_thread(const For& loop) {
    if (loop.kind != ForKind::thread_binding || !loop.thread_binding) return false;
    const std::string& tag = loop.thread_binding->thread_tag;
    return tag.starts_with("threadIdx") || tag.starts_with("blockIdx");
  }
  bool is_on_device(const BufferNode& buffer) const {
    return buffer.scope == "global" || parameters_.count(buffer.data.get()) != 0;
  }

  std::unordered_set<const VarNode*> parameters_;
};

}  // namespace

bool has_device_memory(const Value& target) {
  if (const auto* map = target.get<Value::Map>()) {
    const auto it = map->find("kind");
    return it != map->end() && has_device_memory(it->second);
  }
  const auto* text = target.get<std::string>();
  const std::string_view kind = text ? kind_in(*text) : std::string_view();
  return std::find(gpu_kinds.begin(), gpu_kinds.end(), kind) != gpu_kinds.end();
}

bool verify_memory(const PrimFunc& function) {
  const Value* target = function.attrs.find("target");
  if (!target || !has_device_memory(*target)) return true;
  if (function.attrs.get_or<int64_t>("calling_conv", 0) == device_kernel_launch) return true;
  return HostCode(function).is_legal(function.body);
}

}  // namespace lathe::tir
