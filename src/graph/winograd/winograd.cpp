#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "graph/winograd/winograd_model.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(winograd_shifts_padding, "graph_test", "a convolution that became Winograd's is padded at the other ends");

namespace {

using Extents = std::vector<int64_t>;

// The extents of a tensor of known shape.
std::optional<Extents> extents_of(const Expr& e) {
  const auto* info = e ? as_tensor(e) : nullptr;
  if (!info || !info->shape) return std::nullopt;
  Extents result;
  for (const ir::Expr& extent : *info->shape) {
    const auto value = ir::as_int(extent);
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

// A convolution that the algorithm can compute.
struct Candidate {
  WinogradSizes sizes;
  int64_t height = 0, width = 0;  // of its input
  int64_t top = 0, left = 0;      // of its padding
};

bool all_are(const std::vector<int64_t>& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == value; });
}

// Why the algorithm cannot compute it; empty where it can.
std::string unfit(const Var& var, const Call& call, Candidate& found) {
  const auto& attrs = *static_cast<const ops::ConvAttributes*>(call.attributes.get());
  if (!call.args[1].is<Constant>()) return "its weights are not constant";
  const auto *x_info = as_tensor(call.args[0]), *out_info = as_tensor(var);
  if (!x_info || x_info->dtype != ir::DType::float32() || !out_info || out_info->dtype != x_info->dtype)
    return "it is not one of float32";
  const auto kernel = extents_of(call.args[1]);
  if (!kernel || attrs.kernel_layout != "OIHW" || kernel->size() != 4 || (*kernel)[2] != 3 || (*kernel)[3] != 3)
    return "its windows are not 3x3";
  if (!all_are(attrs.strides, 1)) return "its strides are not one";
  if (!all_are(attrs.dilation, 1)) return "it is dilated";
  if (attrs.groups != 1) return fmt::format("it has {} groups", attrs.groups);
  if (attrs.data_layout != "NHWC" || !(attrs.out_layout.empty() || attrs.out_layout == "NHWC"))
    return "its channels do not lie last: there are too few of them, or convert_layout is off";
  const auto x = extents_of(call.args[0]), out = extents_of(var);
  if (!x || !out) return "its extents are not known before it runs";
  found.sizes = {(*out)[0], (*out)[1], (*out)[2], (*kernel)[1], (*kernel)[0]};
  if (std::min({found.sizes.images, found.sizes.height, found.sizes.width, found.sizes.inputs}) < 1)
    return "there is nothing to compute";
  found.height = (*x)[1];
  found.width = (*x)[2];
  if (attrs.auto_pad == "NOTSET" && !attrs.padding.empty()) {
    found.top = attrs.padding[0];
    found.left = attrs.padding[1];
    if (*std::min_element(attrs.padding.begin(), attrs.padding.end()) < 0) return "its padding is negative";
  } else if (attrs.auto_pad == "SAME_UPPER" || attrs.auto_pad == "SAME_LOWER") {
    found.top = found.left = 1;
  }
  return "";
}

// The padding that a value is computed by: the image inside, and how far it begins after the zeros.
struct Padded {
  Expr image;
  int64_t top = 0, left = 0;
};
Padded inside_padding(const Emitter& emitter, const Expr& x) {
  const Padded as_it_is{x};
  const auto* pad = as_call_of(emitter.value_of(x), "nn.pad");
  if (!pad || (pad->args.size() > 3 && pad->args[3])) return as_it_is;
  if (static_cast<const ops::PadAttributes*>(pad->attributes.get())->mode != "constant") return as_it_is;
  const auto *begins = pad->args[1].as<ShapeExpr>(), *ends = pad->args[2].as<ShapeExpr>();
  if (!begins || !ends || begins->values.size() != 4 || !extents_of(pad->args[0])) return as_it_is;
  for (const auto* side : {begins, ends}) {
    if (!ir::is_int(side->values[0], 0) || !ir::is_int(side->values[3], 0)) return as_it_is;
    for (const ir::Expr& zeros : side->values)
      if (ir::as_int(zeros).value_or(-1) < 0) return as_it_is;
  }
  return {pad->args[0], *ir::as_int(begins->values[1]), *ir::as_int(begins->values[2])};
}

// The input with zeros around it, up to whole tiles.
Result<Expr> whole_tiles(Emitter& emitter, const Expr& x, const Candidate& c, int64_t tile) {
  const int64_t height = (c.sizes.height + tile - 1) / tile * tile + 2;
  const int64_t width = (c.sizes.width + tile - 1) / tile * tile + 2;
  if (height == c.height && width == c.width) return x;
  const Padded from = inside_padding(emitter, x);
  const Extents image = *extents_of(from.image);
  int64_t top = from.top + c.top, left = from.left + c.left;
  int64_t bottom = height - image[1] - top, right = width - image[2] - left;
  if (support::flip(winograd_shifts_padding)) {
    std::swap(top, bottom);
    std::swap(left, right);
  }
  // What the last tiles read beyond their windows counts for nothing.
  support::require(bottom >= 0 && right >= 0, "whole tiles are smaller than the image");
  const auto side = [](int64_t rows, int64_t columns) {
    return make<ShapeExpr>(Shape{ir::int64(0), ir::int64(rows), ir::int64(columns), ir::int64(0)});
  };
  return emitter.call(ops::pad, {from.image, side(top, left), side(bottom, right)},
                      make<ops::PadAttributes>("constant"), "padded");
}

// What people know a convolution by: its node in the model where that has a name, else the variable.
std::string name_of(const Var& var, const Expr& value) {
  const auto* node = value->origin() ? std::get_if<support::ModelNode>(value->origin().get()) : nullptr;
  return node && !node->node.empty() ? node->node : var->name;
}

// What became of a module's convolutions.
struct Summary {
  int64_t count = 0;
  WinogradError worst;
};

class Rewriter {
 public:
  Rewriter(std::string function, const target::Target& target, const PassContext& context, Summary& summary)
      : function_(std::move(function)), target_(target), context_(context), summary_(summary) {}

  Result<Expr> operator()(Emitter& emitter, const Var& var, const Expr& value) {
    const auto* call = as_call_of(value, "nn.conv");
    if (!call) return Expr();
    const std::string name = name_of(var, value), subject = function_ + "." + name;
    Candidate c;
    std::string why = unfit(var, *call, c);
    const int64_t tile = why.empty() ? choose(name, c.sizes, why) : 0;
    if (tile == 0) {
      context_.remark("winograd", subject, why);
      return Expr();
    }
    const Expr tiles = TRY(whole_tiles(emitter, call->args[0], c, tile));
    const auto transform = make<ops::WinogradAttributes>(tile);
    const Expr points = TRY(emitter.call(ops::winograd_input_transform, {tiles}, transform, "points"));
    const Expr kernel = TRY(emitter.call(ops::winograd_kernel, {call->args[1]}, transform, "kernel"));
    const Expr products = TRY(emitter.call(ops::matmul, {points, kernel}, {}, "products"));
    const auto& weights = *call->args[1].as<Constant>()->data;
    const WinogradError error = winograd_error(weights, tile);
    ++summary_.count;
    if (error.relative >= summary_.worst.relative) summary_.worst = error;
    context_.remark_taken("winograd", subject,
                          fmt::format("tile={} error={:.1e} (direct {:.1e})", tile, error.relative, error.direct));
    return make_call(ops::winograd_output_transform, {products},
                     make<ops::WinogradAttributes>(tile, Extents{c.sizes.images, c.sizes.height, c.sizes.width}));
  }

 private:
  // Outputs a side of a tile, as the user or the model decides; 0: it stays as it is, and why.
  int64_t choose(const std::string& convolution, const WinogradSizes& sizes, std::string& why) const {
    const WinogradChoice choice = choose_winograd(sizes, target_);
    int64_t tile = choice.tile;
    for (const std::string& name : {std::string(winograd_tile), convolution + ":" + winograd_tile}) {
      const int64_t given = context_.config.get_or<int64_t>(name, -1);
      if (given == 0 || given == 2 || given == 4) tile = given;
    }
    if (tile == 0) why = choice.tile == 0 ? choice.why : "winograd.tile is 0";
    return tile;
  }

  const std::string function_;
  const target::Target& target_;
  const PassContext& context_;
  Summary& summary_;
};

}  // namespace

Result<IRModule> winograd(IRModule module, const target::Target& target, const PassContext& context) {
  if (!context.config.get_or<bool>(winograd_wanted, false)) return module;
  Summary summary;
  TRY(change_functions(module, [&](const std::string& name, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;
    return rewrite_bindings(function, Rewriter(name, target, context, summary));
  }));
  module.attrs.set(winograd_count, summary.count);
  module.attrs.set(winograd_worst_error, summary.worst.relative);
  module.attrs.set(winograd_direct_error, summary.worst.direct);
  return module;
}

}  // namespace lathe::graph
