#include "graph/layout/forms.h"
#include "graph/layout/grouped_channels.h"
#include "graph/layout/planes.h"
#include "graph/layout/shuffle.h"
#include "graph/layout/twins.h"
#include "graph/layout/wanted_layouts.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "relax/call_tir.h"
#include "tir/carried_axis.h"

namespace lathe::graph {

namespace {

class LayoutConverter {
 public:
  // Tensor programs with the channels last are added to `module`.
  LayoutConverter(ir::IRModule& module, const target::Target& target, const Function& function)
      : module_(module), wanted_(function, target) {}

  Result<Expr> operator()(Emitter& emitter, const Var& var, const Expr& value) {
    if (const auto* item = value.as<TupleGetItem>()) return part(emitter, var, *item);
    const auto* call = value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (op && op->name == "split") return split(emitter, var, *call);
    if (!op || !as_tensor(value)) return Expr();
    if (op->name == "nn.conv") return convolution(emitter, var, *call);
    if (op->name == "nn.max_pool" || op->name == "nn.avg_pool") return pool(emitter, var, *op, *call);
    if (op->name == "concat") return concat(emitter, var, *call);
    if (op->name == "strided_slice") return slice(emitter, var, *call);
    if (op->name == "nn.pad") return pad(emitter, var, *call);
    if (op == &relax::call_tir_operator) return program(emitter, var, value);
    if (op->name == "nn.batch_norm_inference") return batch_norm(emitter, var, *call);
    if (op->name == "permute_dims") return permutation(var, *call);
    if (op->is_view) return view(emitter, var, value, *call);
    if (op->name == "nn.layer_norm") return layer_norm(emitter, var, *call);
    if (op->attributes == relax::attributes_of<ops::ReduceAttributes>()) return reduction(emitter, var, *op, *call);
    if (op->fusion <= FusionKind::broadcast && std::holds_alternative<TeExpression>(op->meaning))
      return elementwise(emitter, var, *op, *call, value);
    return Expr();
  }

 private:
  // ---- operators ----

  // A convolution that reads its image with the channels last, and gives it as `out_layout` says; empty: so too.
  Result<Expr> of_image_last(Emitter& emitter, const Call& call, const std::string& out_layout) {
    const auto& attrs = *static_cast<const ops::ConvAttributes*>(call.attributes.get());
    // What turns an image for one convolution writes it into its padding.
    const bool is_turned =
        !twins_.of(call.args[0]) && wanted_.is_turned_into_padding(call.args[0]) && attrs.groups == 1;
    const bool is_padded = is_turned || wanted_.is_computed_into_padding(call.args[0]);
    Expr data = TRY(twins_.image(emitter, call.args[0]));
    if (is_padded) data = TRY(padded(emitter, data, attrs.padding));
    return make_call(ops::conv, {data, call.args[1]}, ir::with(attrs, [&](ops::ConvAttributes& copy) {
                       copy.data_layout = "NHWC";
                       copy.out_layout = out_layout;
                       if (is_padded) copy.padding.assign(copy.padding.size(), 0);
                     }));
  }

  Result<Expr> convolution(Emitter& emitter, const Var& var, const Call& call) {
    if (twins_.of(call.args[0]) && wanted_.reads_last(call)) return of_image_last(emitter, call, "NCHW");
    if (!wanted_.turns(call) || !shape_of(var) || as_tensor(var)->dtype != as_tensor(call.args[0])->dtype)
      return Expr();
    const auto& attrs = *static_cast<const ops::ConvAttributes*>(call.attributes.get());
    const Shape* kernel = shape_of(call.args[1]);
    if (!twins_.of(call.args[0]) && !wanted_.wants_last(var) && wanted_.fills_rows(call, var)) return Expr();
    const bool is_of_pixels = attrs.groups == 1 && is_pixel(*kernel) && all_are(attrs.padding, 0);
    const bool is_product = is_of_pixels && all_are(attrs.strides, 1);
    const bool has_strides = attrs.strides.size() + 2 == kernel->size();
    if ((is_product || (is_of_pixels && has_strides)) && !twins_.of(call.args[0]) && !wanted_.wants_last(var) &&
        fills_planes(*shape_of(var), *kernel))
      return planes_.product(emitter, var, call.args[1],
                             is_product ? call.args[0] : TRY(met_pixels(emitter, var, call)));
    if (is_product && !wanted_.fills_padding(var)) {
      const Expr matrix = TRY(reshaped(emitter, call.args[1], {(*kernel)[0], (*kernel)[1]}));
      const Expr turned = TRY(emitter.call(ops::permute_dims, {matrix}));
      return twins_.converted(
          emitter, var, TRY(make_call(ops::matmul, {TRY(twins_.rows(emitter, call.args[0])), turned})), Form::rows);
    }
    if (!twins_.of(call.args[0]) && wanted_.reads_as_it_lies(call)) {
      const auto turning = ir::with(attrs, [](ops::ConvAttributes& copy) { copy.out_layout = "NHWC"; });
      return twins_.converted(emitter, var, TRY(make_call(ops::conv, call.args, turning)), Form::image);
    }
    return twins_.converted(emitter, var, TRY(of_image_last(emitter, call, "")), Form::image);
  }

  // An image with zeros around it: begins of the spatial dimensions, and then their ends.
  static Result<Expr> padded(Emitter& emitter, const Expr& image, const std::vector<int64_t>& padding) {
    const auto side = [&](auto first, auto last) {
      Shape shape{ir::int64(0)};
      for (auto it = first; it != last; ++it) shape.push_back(ir::int64(*it));
      shape.push_back(ir::int64(0));
      return make<ShapeExpr>(std::move(shape));
    };
    const auto middle = padding.begin() + static_cast<ptrdiff_t>(padding.size() / 2);
    return emitter.call(ops::pad, {image, side(padding.begin(), middle), side(middle, padding.end())},
                        make<ops::PadAttributes>("constant"), "padded");
  }

  // Windows of one pixel that touch every pixel once.
  static bool all_are(const std::vector<int64_t>& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == value; });
  }

  Result<Expr> pool(Emitter& emitter, const Var& var, const Operator& op, const Call& call) {
    const auto& attrs = *static_cast<const ops::PoolAttributes*>(call.attributes.get());
    if (!twins_.of(call.args[0]) || attrs.layout != "NCHW" || !shape_of(var)) return Expr();
    const auto moved = ir::with(attrs, [](ops::PoolAttributes& copy) { copy.layout = "NHWC"; });
    return twins_.converted(emitter, var, TRY(make_call(op, {TRY(twins_.image(emitter, call.args[0]))}, moved)),
                            Form::image);
  }

  Result<Expr> concat(Emitter& emitter, const Var& var, const Call& call) {
    std::vector<Expr> parts = call.args;
    for (const Expr& part : parts)
      if (!twins_.of(part)) return Expr();
    if (!shape_of(var)) return Expr();
    for (Expr& part : parts) part = TRY(twins_.image(emitter, part));
    const size_t rank = shape_of(var)->size();
    const auto& attrs = *static_cast<const ops::AxisAttributes*>(call.attributes.get());
    return twins_.converted(emitter, var,
                            TRY(make_call(ops::concat, parts, make<ops::AxisAttributes>(moved_axis(attrs.axis, rank)))),
                            Form::image);
  }

  Result<Expr> slice(Emitter& emitter, const Var& var, const Call& call) {
    const auto& attrs = *static_cast<const ops::StridedSliceAttributes*>(call.attributes.get());
    if (!twins_.of(call.args[0]) || !shape_of(var) || attrs.axes.empty()) return Expr();
    const size_t rank = shape_of(var)->size();
    const auto moved = ir::with(attrs, [&](ops::StridedSliceAttributes& copy) {
      for (int64_t& axis : copy.axes) axis = moved_axis(axis, rank);
    });
    std::vector<Expr> args = call.args;
    args[0] = TRY(twins_.image(emitter, args[0]));
    return twins_.converted(emitter, var, TRY(make_call(ops::strided_slice, args, moved)), Form::image);
  }

  Result<Expr> pad(Emitter& emitter, const Var& var, const Call& call) {
    if (!twins_.of(call.args[0]) || !shape_of(var)) return Expr();
    std::vector<Expr> args = call.args;
    args[0] = TRY(twins_.image(emitter, args[0]));
    for (size_t side : {1, 2}) {
      const auto* sizes = args[side].as<ShapeExpr>();
      if (!sizes) return Expr();
      args[side] = make<ShapeExpr>(channels_last(sizes->values));
    }
    return twins_.converted(emitter, var, TRY(make_call(ops::pad, args, call.attributes)), Form::image);
  }

  // What `var` itself is bound to stays: nothing needs it once its parts are taken from the other order.
  Result<Expr> split(Emitter& emitter, const Var& var, const Call& call) {
    if (!twins_.of(call.args[0])) return Expr();
    const size_t rank = shape_of(call.args[0])->size();
    const auto& attrs = *static_cast<const ops::SplitAttributes*>(call.attributes.get());
    const auto moved = ir::with(attrs, [&](ops::SplitAttributes& copy) { copy.axis = moved_axis(attrs.axis, rank); });
    std::vector<Expr> args = call.args;
    args[0] = TRY(twins_.image(emitter, args[0]));
    split_[var.get()] = emitter.emit(TRY(make_call(ops::split, args, moved)), var->name + "_last");
    return Expr();
  }

  Result<Expr> part(Emitter& emitter, const Var& var, const TupleGetItem& item) {
    const auto parts = split_.find(item.tuple.get());
    if (parts == split_.end() || !shape_of(var)) return Expr();
    const auto* tuple = parts->second->struct_info.as<TupleStructInfo>();
    const StructInfo& info = tuple->items.at(static_cast<size_t>(item.index));
    return twins_.converted(emitter, var, with_struct_info(make<TupleGetItem>(parts->second, item.index), info),
                            Form::image);
  }

  // A tensor program that carries the channels through. Where nothing wants its result with the channels last, a larger
  // one is not turned instead of what it comes of.
  Result<Expr> program(Emitter& emitter, const Var& var, const Expr& value) {
    relax::CallTir call = *relax::as_call_tir(value);
    if (call.outputs.size() != 1 || !shape_of(var) || shape_of(var)->size() < 3) return Expr();
    const size_t rank = shape_of(var)->size();
    const auto is_image = [&](const Expr& arg) { return shape_of(arg) && shape_of(arg)->size() == rank; };
    bool grows = false, has_twin = false;
    for (const Expr& arg : call.args) {
      if (!is_image(arg)) continue;
      has_twin = has_twin || twins_.of(arg);
      const auto own = ir::as_int(ir::product(*shape_of(arg))), whole = ir::as_int(ir::product(*shape_of(var)));
      grows = grows || !own || !whole || *own < *whole;
    }
    const auto function = module_.find_as<tir::PrimFunc>(call.function);
    if (!has_twin || !function || (grows && !wanted_.wants_last(var))) return Expr();
    std::string& name = programs_[call.function];
    if (name.empty()) {
      const tir::Function last = tir::with_axis_last(*function, rank, 1);
      if (!last) return Expr();
      name = module_.unique_name(call.function + "_last");
      module_.set(name, last);
    }
    for (Expr& arg : call.args)
      if (is_image(arg)) arg = TRY(twins_.image(emitter, arg));
    const StructInfo info = relax::tensor_info(channels_last(*shape_of(var)), as_tensor(var)->dtype);
    return twins_.converted(emitter, var, TRY(relax::call_tir(name, call.args, {info}, call.scalars)), Form::image);
  }

  // Its parameters are one number a channel, wherever the channels are.
  Result<Expr> batch_norm(Emitter& emitter, const Var& var, const Call& call) {
    if (!twins_.of(call.args[0]) || !shape_of(var)) return Expr();
    const size_t rank = shape_of(var)->size();
    const auto& attrs = *static_cast<const ops::BatchNormAttributes*>(call.attributes.get());
    const auto moved =
        ir::with(attrs, [&](ops::BatchNormAttributes& copy) { copy.axis = moved_axis(attrs.axis, rank); });
    std::vector<Expr> args = call.args;
    args[0] = TRY(twins_.image(emitter, args[0]));
    return twins_.converted(emitter, var, TRY(make_call(ops::batch_norm, args, moved)), Form::image);
  }

  // A transposition of the model's own to what the value is already; or from channels last, which its operand is.
  Result<Expr> permutation(const Var& var, const Call& call) {
    const std::vector<int64_t> axes = permuted_axes(call);
    const size_t rank = axes.size();
    if (rank < 3) return Expr();
    const Twin* twin = twins_.of(call.args[0]);
    if (twin && twin->image && axes == axes_to_last(rank)) return twin->image;
    if (axes == axes_to_first(rank) && rank > 3 && shape_of(var)) twins_.hold_image(var, call.args[0]);
    return Expr();
  }

  // Of one pixel all orders are the same. Pixels that are taken for one axis, or for several, are so in either order.
  Result<Expr> view(Emitter& emitter, const Var& var, const Expr& value, const Call& call) {
    if (!shape_of(value) || !shape_of(call.args[0])) return Expr();
    const Shape &result = *shape_of(value), &source = *shape_of(call.args[0]);
    if (const auto found = shuffle(emitter, var, call, result))
      return twins_.converted(
          emitter, var, TRY(shuffled(emitter, TRY(twins_.image(emitter, found->source)), *found, result)), Form::image);
    if (const Expr image_rows = groups_.of(call.args[0])) {
      const Shape& rows = *shape_of(image_rows);
      const bool is_image =
          result.size() > 2 && ir::structural_equal(result[0], rows[0]) && ir::structural_equal(result[1], rows[2]);
      return is_image ? twins_.converted(emitter, var, image_rows, Form::rows) : Expr();
    }
    const Twin* twin = twins_.of(call.args[0]);
    if (twin && groups_channels(source, result)) {
      groups_.hold(var, TRY(twins_.rows(emitter, call.args[0])));
      return Expr();
    }
    if (twin && is_pixel(source))
      return make_call(ops::reshape, {TRY(twins_.image_or_rows(emitter, call.args[0])), make<ShapeExpr>(result)});
    if (!keeps_channels(source, result)) return Expr();
    if (twin) {
      const Expr same_rows = TRY(twins_.rows(emitter, call.args[0]));
      twins_.hold_rows(var, same_rows, result.size() == 3 ? same_rows : Expr());
    } else if (const Expr tokens = tokens_of(emitter, call.args[0]); tokens && result.size() > 3) {
      twins_.hold_rows(var, tokens);
    }
    return Expr();
  }

  // Normalisation of each channel, or group of channels, over all pixels.
  Result<Expr> layer_norm(Emitter& emitter, const Var& var, const Call& call) {
    const Shape* shape = shape_of(var);
    if (!shape || std::any_of(call.args.begin() + 1, call.args.end(), [](const Expr& e) { return bool(e); }))
      return Expr();
    const auto& attrs = *static_cast<const ops::LayerNormAttributes*>(call.attributes.get());
    const auto rank = static_cast<int64_t>(shape->size());
    std::vector<int64_t> axes, pixels;
    for (const int64_t axis : attrs.axes) axes.push_back(axis < 0 ? axis + rank : axis);
    std::sort(axes.begin(), axes.end());
    for (int64_t d = 2; d < rank; ++d) pixels.push_back(d);
    if (axes != pixels) return Expr();
    if (groups_.of(call.args[0])) return groups_.normalize(emitter, var, call.args[0], attrs.epsilon);
    if (!twins_.of(call.args[0])) return Expr();
    const auto moved = ir::with(attrs, [](ops::LayerNormAttributes& copy) { copy.axes = {1}; });
    return twins_.converted(
        emitter, var, TRY(make_call(ops::layer_norm, {TRY(twins_.rows(emitter, call.args[0]))}, moved)), Form::rows);
  }

  // The [batch, tokens, channels] of which a value [batch, channels, tokens] is the transposition: as the layers of a
  // transformer hold an image's pixels; null where it is none.
  static Expr tokens_of(const Emitter& emitter, const Expr& e) {
    const Expr made = emitter.value_of(e);
    const Call* exchanging = made ? as_call_of(made, "permute_dims") : nullptr;
    const bool turns = exchanging && permuted_axes(*exchanging) == std::vector<int64_t>{0, 2, 1};
    return turns ? exchanging->args[0] : Expr();
  }

  // Where parts of the channels go among the pixels the image has another size: turned only where that is wanted.
  std::optional<Shuffle> shuffle(const Emitter& emitter, const Var& var, const Call& merging,
                                 const Shape& result) const {
    auto found = shuffle_of(emitter, merging, result);
    if (!found || !twins_.of(found->source)) return std::nullopt;
    const bool is_wanted = wanted_.wants_last(var) || wanted_.is_wanted_by_few(var);
    return found->moves_pixels() && !is_wanted ? std::nullopt : found;
  }

  Result<Expr> reduction(Emitter& emitter, const Var& var, const Operator& op, const Call& call) {
    const Twin* twin = twins_.of(call.args[0]);
    const auto& attrs = *static_cast<const ops::ReduceAttributes*>(call.attributes.get());
    if (!twin || !attrs.axis) return Expr();
    const size_t rank = shape_of(call.args[0])->size();
    std::vector<int64_t> axes;
    for (const int64_t axis : *attrs.axis) axes.push_back(moved_axis(axis, rank));
    std::sort(axes.begin(), axes.end());
    const auto last = static_cast<int64_t>(rank) - 1;
    bool all_pixels = axes.size() + 2 == rank;
    for (const int64_t axis : axes) all_pixels = all_pixels && axis > 0 && axis < last;
    if (all_pixels) {
      const auto over_rows = ir::with(attrs, [](ops::ReduceAttributes& copy) { copy.axis = std::vector<int64_t>{1}; });
      const Expr result = TRY(make_call(op, {TRY(twins_.rows(emitter, call.args[0]))}, over_rows));
      return attrs.keepdims ? twins_.converted(emitter, var, result, Form::rows) : result;
    }
    const bool over_batch = !axes.empty() && axes.front() == 0, over_channels = !axes.empty() && axes.back() == last;
    if (!attrs.keepdims && over_batch) return Expr();
    const auto moved = ir::with(attrs, [&](ops::ReduceAttributes& copy) { copy.axis = axes; });
    const Expr result = TRY(make_call(op, {TRY(twins_.image(emitter, call.args[0]))}, moved));
    // What is left of the axes is [batch, spatial…] in either order, else the channels are last of it.
    return !attrs.keepdims && over_channels ? result : twins_.converted(emitter, var, result, Form::image);
  }

  Result<Expr> elementwise(Emitter& emitter, const Var& var, const Operator& op, const Call& call, const Expr& value) {
    const Shape* out = shape_of(value);
    if (!out || out->size() < 3) return Expr();
    bool has_rows = true;
    if (groups_.has_any(call.args)) return groups_.elementwise(emitter, var, op, call);
    for (const Expr& arg : call.args) {
      if (!arg || !as_tensor(arg)) {
        if (arg && arg.is<ShapeExpr>()) return Expr();
        continue;
      }
      const Shape* shape = shape_of(arg);
      if (!shape || shape->size() > out->size()) return Expr();
      has_rows = has_rows && spans_pixels(*shape, *out);
    }
    const Twin* latest = twins_.latest_of(call.args);
    if (!latest) return planes_.has_any(call.args) ? planes_.elementwise(emitter, var, op, call) : Expr();
    const Form form = has_rows ? latest->computed_in : Form::image;
    std::vector<Expr> args;
    for (const Expr& arg : call.args)
      args.push_back(arg && as_tensor(arg) ? TRY(twins_.operand(emitter, arg, out->size(), form)) : arg);
    return twins_.converted(emitter, var, TRY(make_call(op, args, call.attributes)), form);
  }

  ir::IRModule& module_;
  const WantedLayouts wanted_;
  Twins twins_;
  std::unordered_map<const ir::Node*, Expr> split_;  // tuples, their parts with the channels last
  GroupedChannels groups_;
  Planes planes_;
  std::unordered_map<std::string, std::string> programs_;  // tensor programs, those with the channels last
};

}  // namespace

support::Result<ir::IRModule> convert_layout(ir::IRModule module, const target::Target& target,
                                             const ir::PassContext&) {
  TRY(change_functions(module, [&](const std::string&, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;
    return rewrite_bindings(function, LayoutConverter(module, target, function));
  }));
  return module;
}

}  // namespace lathe::graph
