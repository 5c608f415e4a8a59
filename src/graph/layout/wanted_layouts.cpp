#include "graph/layout/wanted_layouts.h"

#include "graph/groups.h"
#include "graph/layout/forms.h"
#include "ops/attributes.h"
#include "relax/call_tir.h"

namespace lathe::graph {

namespace {

// Up to so many channels, a convolution that reads each from its own plane costs less than a transposition.
constexpr int64_t few_channels = 4;

// So many terms one lane of a sum adds up at most.
constexpr int64_t most_terms_in_lanes = 1024;

const ops::ConvAttributes& attributes_of_conv(const Call& conv) {
  return *static_cast<const ops::ConvAttributes*>(conv.attributes.get());
}

bool has_padding(const Call& conv) {
  const auto& attrs = attributes_of_conv(conv);
  if (attrs.auto_pad != "NOTSET" || attrs.padding.empty()) return false;
  const auto [least, most] = std::minmax_element(attrs.padding.begin(), attrs.padding.end());
  return *least >= 0 && *most > 0;
}

// What variables are bound to, where that is an operator's call, and how often each is used (no constant is counted).
struct Calls {
  std::unordered_map<const ir::Node*, int> uses;
  std::unordered_map<const ir::Node*, const Call*> by_var;  // of what was met so far
};

// The variable of the convolution that computes `e`, through elementwise operators of whose values nothing else is
// wanted (one may be wanted by several of them, as x is in x * sigmoid(x)); null where there is none that turns.
const ir::Node* convolution_behind(const Expr& e, const Calls& calls, const WantedLayouts& wanted) {
  const Shape* shape = shape_of(e);
  if (!shape) return nullptr;
  std::unordered_map<const ir::Node*, int> used{{e.get(), 1}};  // by what is passed through, and by what reads `e`
  std::vector<Expr> values{e};
  while (!values.empty()) {
    const Expr value = values.back();
    values.pop_back();
    const auto call = calls.by_var.find(value.get());
    if (call == calls.by_var.end() || calls.uses.at(value.get()) != used[value.get()]) continue;
    const Operator* op = callee_operator(*call->second);
    if (op->name == "nn.conv" && wanted.turns(*call->second)) return value.get();
    if (op->fusion > FusionKind::broadcast || !std::holds_alternative<TeExpression>(op->meaning)) continue;
    for (auto arg = call->second->args.rbegin(); arg != call->second->args.rend(); ++arg) {
      if (!*arg || !calls.by_var.count(arg->get())) continue;
      if (!shape_of(*arg) || !relax::same_shape(*shape_of(*arg), *shape)) continue;
      ++used[arg->get()];
      values.push_back(*arg);
    }
  }
  return nullptr;
}

// Images whose pixels are taken for one axis, or one for several, and those that tensor programs compute.
std::unordered_set<const ir::Node*> images_in_any_order(const std::vector<Binding>& bindings) {
  std::unordered_set<const ir::Node*> images;
  for (const Binding& binding : bindings) {
    const auto* bound = binding.as<VarBinding>();
    if (bound && relax::as_call_tir(bound->value)) images.insert(bound->var.get());
    const Call* call = bound ? as_call_of(bound->value, "reshape") : nullptr;
    const Shape *shape = bound ? shape_of(bound->var) : nullptr, *source = call ? shape_of(call->args[0]) : nullptr;
    if (shape && source && source->size() > 3 && keeps_channels(*source, *shape)) images.insert(bound->var.get());
  }
  return images;
}

}  // namespace

WantedLayouts::WantedLayouts(const Function& function, const target::Target& target)
    : target_(target), weights_(function), lanes_(target.lanes(32)) {
  const std::vector<Binding> bindings = all_bindings(function);
  find_padded(function, bindings);
  find_wanted_last(bindings);
}

// A convolution's padding joins what computes its input where that is another convolution, with what is elementwise
// behind it, and nothing else wants the value.
void WantedLayouts::find_padded(const Function& function, const std::vector<Binding>& bindings) {
  if (std::none_of(bindings.begin(), bindings.end(), [](const Binding& binding) {
        const auto* bound = binding.as<VarBinding>();
        return bound && as_call_of(bound->value, "nn.conv");
      }))
    return;
  Calls calls{count_uses(function), {}};
  for (const Binding& binding : bindings) {
    const auto* bound = binding.as<VarBinding>();
    const auto* call = bound ? bound->value.as<Call>() : nullptr;
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op) continue;
    calls.by_var[bound->var.get()] = call;
    if (op->name != "nn.conv" || !has_padding(*call) || (!turns(*call) && !reads_last(*call))) continue;
    const Expr& image = call->args[0];
    const auto used = calls.uses.find(image.get());
    if (const ir::Node* conv = convolution_behind(image, calls, *this)) {
      computed_into_padding_.insert(image.get());
      fill_padding_.insert(conv);
    } else if (used != calls.uses.end() && used->second == 1 && shape_of(image)) {
      turned_into_padding_.insert(image.get());
    }
  }
}

void WantedLayouts::find_wanted_last(const std::vector<Binding>& bindings) {
  const auto in_any_order = images_in_any_order(bindings);
  for (auto it = bindings.rbegin(); it != bindings.rend(); ++it) {
    const auto* bound = it->as<VarBinding>();
    const auto* call = bound ? bound->value.as<Call>() : nullptr;
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op) continue;
    const bool is_between = op->fusion <= FusionKind::broadcast && wanted_by_few_.count(bound->var.get());
    if (is_between || (op->name == "nn.conv" && reads_last(*call)))
      for (const Expr& arg : call->args)
        if (arg) wanted_by_few_.insert(arg.get());
    const bool turning = op->name == "nn.conv" && turns(*call) && !fills_rows(*call, bound->var);
    const bool turned = op->name == "permute_dims" && in_any_order.count(call->args[0].get()) &&
                        permuted_axes(*call) == axes_to_last(shape_of(call->args[0])->size());
    if (!turning && !turned && !wants_last(bound->var)) continue;
    const auto program = relax::as_call_tir(bound->value);
    for (const Expr& arg : program ? program->args : call->args)
      if (arg) wanted_last_.insert(arg.get());
  }
}

// Whether a convolution is one of float32 by weights that are known, in the order of layouts that it came in.
bool WantedLayouts::is_as_given(const Call& conv) const {
  const auto& attrs = attributes_of_conv(conv);
  const Shape *x = shape_of(conv.args[0]), *kernel = shape_of(conv.args[1]);
  if (!x || !kernel || x->size() < 3 || !weights_.has(conv.args[1])) return false;
  if (attrs.data_layout != "NCHW" || !attrs.out_layout.empty() || attrs.kernel_layout != "OIHW") return false;
  return as_tensor(conv.args[0])->dtype == ir::DType::float32();
}

bool WantedLayouts::turns(const Call& conv) const {
  if (!is_as_given(conv)) return false;
  const int64_t groups = attributes_of_conv(conv).groups;
  const Shape& kernel = *shape_of(conv.args[1]);
  const int64_t channels = ir::as_int(kernel[0]).value_or(0);
  const bool depthwise = groups == channels && ir::is_int(kernel[1], 1);
  // Few channels fill no vector.
  return target_.fills_vector(channels, 32) && (groups == 1 || depthwise || has_group_loops(conv, lanes_));
}

bool WantedLayouts::reads_last(const Call& conv) const {
  if (!is_as_given(conv) || attributes_of_conv(conv).groups != 1) return false;
  const Shape& kernel = *shape_of(conv.args[1]);
  const auto channels = ir::as_int(kernel[0]), read = ir::as_int(kernel[1]), taps = ir::as_int(pixels_of(kernel));
  return channels && read && taps && *channels > 0 && !target_.fills_vector(*channels, 32) && *read > 0 &&
         *read % lanes_ == 0 && *taps * *read <= most_terms_in_lanes * lanes_;
}

bool WantedLayouts::reads_as_it_lies(const Call& conv) const {
  const auto inputs = ir::as_int((*shape_of(conv.args[1]))[1]);
  return has_group_loops(conv, lanes_) || (attributes_of_conv(conv).groups == 1 && inputs && *inputs <= few_channels);
}

bool WantedLayouts::fills_rows(const Call& conv, const Var& var) const {
  const Shape *out = shape_of(var), *kernel = shape_of(conv.args[1]);
  const bool depthwise = attributes_of_conv(conv).groups > 1 && kernel && ir::is_int((*kernel)[1], 1);
  if (!depthwise || !out || !ir::as_int(out->back())) return false;
  const int64_t width = *ir::as_int(out->back());
  return 5 * width >= 2 * lanes_ * ((width + lanes_ - 1) / lanes_);
}

}  // namespace lathe::graph
