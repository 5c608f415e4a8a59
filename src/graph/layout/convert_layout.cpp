#include "graph/layout/conversion.h"
#include "graph/passes.h"
#include "ops/attributes.h"
#include "relax/call_tir.h"
#include "tir/carried_axis.h"

namespace lathe::graph {

namespace {

// The call with the channels of its first operand last, and what else it is given as it is.
Result<Expr> call_of_image(const Conversion& c, AttributesRef attributes) {
  std::vector<Expr> args = c.call.args;
  args[0] = TRY(c.image(args[0]));
  return make_call(c.op, std::move(args), std::move(attributes));
}

Result<Expr> convert_pool(const Conversion& c) {
  const auto& attrs = c.attributes<ops::PoolAttributes>();
  if (!c.has_twin() || attrs.layout != "NCHW" || !shape_of(c.var)) return Expr();
  const auto moved = ir::with(attrs, [](ops::PoolAttributes& copy) { copy.layout = "NHWC"; });
  return c.converted(TRY(make_call(c.op, {TRY(c.image(c.call.args[0]))}, moved)), Form::image);
}

Result<Expr> convert_concat(const Conversion& c) {
  std::vector<Expr> parts = c.call.args;
  for (const Expr& part : parts)
    if (!c.layouts.twins.of(part)) return Expr();
  if (!shape_of(c.var)) return Expr();
  for (Expr& part : parts) part = TRY(c.image(part));
  const int64_t axis = moved_axis(c.attributes<ops::AxisAttributes>().axis, shape_of(c.var)->size());
  return c.converted(TRY(make_call(c.op, parts, make<ops::AxisAttributes>(axis))), Form::image);
}

Result<Expr> convert_slice(const Conversion& c) {
  const auto& attrs = c.attributes<ops::StridedSliceAttributes>();
  if (!c.has_twin() || !shape_of(c.var) || attrs.axes.empty()) return Expr();
  const auto moved = ir::with(attrs, [&](ops::StridedSliceAttributes& copy) {
    for (int64_t& axis : copy.axes) axis = moved_axis(axis, shape_of(c.var)->size());
  });
  return c.converted(TRY(call_of_image(c, moved)), Form::image);
}

Result<Expr> convert_pad(const Conversion& c) {
  if (!c.has_twin() || !shape_of(c.var)) return Expr();
  std::vector<Expr> args = c.call.args;
  args[0] = TRY(c.image(args[0]));
  for (size_t side : {1, 2}) {
    const auto* sizes = args[side].as<ShapeExpr>();
    if (!sizes) return Expr();
    args[side] = make<ShapeExpr>(channels_last(sizes->values));
  }
  return c.converted(TRY(make_call(c.op, args, c.call.attributes)), Form::image);
}

// Its parameters are one number a channel, wherever the channels are.
Result<Expr> convert_batch_norm(const Conversion& c) {
  if (!c.has_twin() || !shape_of(c.var)) return Expr();
  const auto moved = ir::with(c.attributes<ops::BatchNormAttributes>(), [&](ops::BatchNormAttributes& copy) {
    copy.axis = moved_axis(copy.axis, shape_of(c.var)->size());
  });
  return c.converted(TRY(call_of_image(c, moved)), Form::image);
}

// What the variable itself is bound to stays: nothing needs it once its parts are taken from the other order.
Result<Expr> convert_split(const Conversion& c) {
  if (!c.has_twin()) return Expr();
  const auto moved = ir::with(c.attributes<ops::SplitAttributes>(), [&](ops::SplitAttributes& copy) {
    copy.axis = moved_axis(copy.axis, shape_of(c.call.args[0])->size());
  });
  c.layouts.splits[c.var.get()] = c.emitter.emit(TRY(call_of_image(c, moved)), c.var->name + "_last");
  return Expr();
}

Result<Expr> convert_part(Layouts& layouts, Emitter& emitter, const Var& var, const TupleGetItem& item) {
  const auto parts = layouts.splits.find(item.tuple.get());
  if (parts == layouts.splits.end() || !shape_of(var)) return Expr();
  const auto* tuple = parts->second->struct_info.as<TupleStructInfo>();
  const StructInfo& info = tuple->items.at(static_cast<size_t>(item.index));
  const Expr part = with_struct_info(make<TupleGetItem>(parts->second, item.index), info);
  return layouts.twins.converted(emitter, var, part, Form::image);
}

// The tensor program with the channels of all its images of `rank` axes last, by name; empty where there is none.
std::string program_last(Layouts& layouts, const std::string& name, size_t rank) {
  const auto function = layouts.module.find_as<tir::PrimFunc>(name);
  if (!function) return "";
  std::string& known = layouts.programs[name];
  if (!known.empty()) return known;
  const tir::Function last = tir::with_axis_last(*function, rank, 1);
  if (!last) return "";
  known = layouts.module.unique_name(name + "_last");
  layouts.module.set(known, last);
  return known;
}

// A tensor program that carries the channels through. Where nothing wants its result with the channels last, a larger
// one is not turned instead of what it comes of.
Result<Expr> convert_program(const Conversion& c) {
  relax::CallTir call = *relax::as_call_tir(c.value);
  const Shape* shape = shape_of(c.var);
  if (call.outputs.size() != 1 || !shape || shape->size() < 3) return Expr();
  const size_t rank = shape->size();
  const auto is_image = [&](const Expr& arg) { return shape_of(arg) && shape_of(arg)->size() == rank; };
  const auto whole = ir::as_int(ir::product(*shape));
  bool grows = false, has_twin = false;
  for (const Expr& arg : call.args) {
    if (!is_image(arg)) continue;
    has_twin = has_twin || c.layouts.twins.of(arg);
    const auto own = ir::as_int(ir::product(*shape_of(arg)));
    grows = grows || !own || !whole || *own < *whole;
  }
  if (!has_twin || (grows && !c.layouts.wanted.wants_last(c.var))) return Expr();
  const std::string last = program_last(c.layouts, call.function, rank);
  if (last.empty()) return Expr();
  for (Expr& arg : call.args)
    if (is_image(arg)) arg = TRY(c.image(arg));
  const StructInfo info = relax::tensor_info(channels_last(*shape), as_tensor(c.var)->dtype);
  return c.converted(TRY(relax::call_tir(last, call.args, {info}, call.scalars)), Form::image);
}

// Normalisation of each channel, or group of channels, over all pixels.
Result<Expr> convert_layer_norm(const Conversion& c) {
  const Shape* shape = shape_of(c.var);
  const Expr& given = c.call.args[0];
  if (!shape || std::any_of(c.call.args.begin() + 1, c.call.args.end(), [](const Expr& e) { return bool(e); }))
    return Expr();
  const auto& attrs = c.attributes<ops::LayerNormAttributes>();
  const auto rank = static_cast<int64_t>(shape->size());
  std::vector<int64_t> axes, pixels;
  for (const int64_t axis : attrs.axes) axes.push_back(axis < 0 ? axis + rank : axis);
  std::sort(axes.begin(), axes.end());
  for (int64_t d = 2; d < rank; ++d) pixels.push_back(d);
  if (axes != pixels) return Expr();
  if (c.layouts.groups.of(given)) return c.layouts.groups.normalize(c.emitter, c.var, given, attrs.epsilon);
  if (!c.has_twin()) return Expr();
  const auto moved = ir::with(attrs, [](ops::LayerNormAttributes& copy) { copy.axes = {1}; });
  return c.converted(TRY(make_call(c.op, {TRY(c.rows(given))}, moved)), Form::rows);
}

Result<Expr> convert_reduction(const Conversion& c) {
  const auto& attrs = c.attributes<ops::ReduceAttributes>();
  const Expr& given = c.call.args[0];
  if (!c.has_twin() || !attrs.axis) return Expr();
  const size_t rank = shape_of(given)->size();
  const auto last_axis = static_cast<int64_t>(rank) - 1;
  std::vector<int64_t> axes;
  for (const int64_t axis : *attrs.axis) axes.push_back(moved_axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  const auto is_of_pixels = [&](int64_t axis) { return axis > 0 && axis < last_axis; };
  if (axes.size() + 2 == rank && std::all_of(axes.begin(), axes.end(), is_of_pixels)) {
    const auto over_rows = ir::with(attrs, [](ops::ReduceAttributes& copy) { copy.axis = std::vector<int64_t>{1}; });
    const Expr result = TRY(make_call(c.op, {TRY(c.rows(given))}, over_rows));
    return attrs.keepdims ? c.converted(result, Form::rows) : result;
  }
  const bool over_batch = !axes.empty() && axes.front() == 0, over_channels = !axes.empty() && axes.back() == last_axis;
  if (!attrs.keepdims && over_batch) return Expr();
  const auto moved = ir::with(attrs, [&](ops::ReduceAttributes& copy) { copy.axis = axes; });
  const Expr result = TRY(make_call(c.op, {TRY(c.image(given))}, moved));
  // What is left of the axes is [batch, spatial…] in either order, else the channels are last of it.
  return !attrs.keepdims && over_channels ? result : c.converted(result, Form::image);
}

// In the form that the latest of its operands was computed in, which is the likeliest to be fused with it.
Result<Expr> convert_elementwise(const Conversion& c) {
  Twins& twins = c.layouts.twins;
  const std::vector<Expr>& operands = c.call.args;
  const Shape* out = shape_of(c.value);
  if (!out || out->size() < 3) return Expr();
  if (c.layouts.groups.has_any(operands)) return c.layouts.groups.elementwise(c.emitter, c.var, c.op, c.call);
  bool has_rows = true, has_image = false;
  for (const Expr& operand : operands) {
    if (operand && operand.is<ShapeExpr>()) return Expr();
    if (!operand || !as_tensor(operand)) continue;
    const Shape* shape = shape_of(operand);
    if (!shape || shape->size() > out->size()) return Expr();
    has_rows = has_rows && spans_pixels(*shape, *out);
    has_image = has_image || (twins.of(operand) && relax::same_shape(*shape, *out));
  }
  const Twin* latest = twins.latest_of(operands);
  if (!latest && c.layouts.planes.has_any(operands))
    return c.layouts.planes.elementwise(c.emitter, c.var, c.op, c.call);
  if (!latest) return Expr();
  // For a number a channel, which lies the same in either order, no image is turned.
  if (!has_image && !c.layouts.wanted.wants_last(c.var)) return Expr();
  const Form form = has_rows ? latest->computed_in : Form::image;
  std::vector<Expr> args;
  for (const Expr& operand : operands)
    args.push_back(operand && as_tensor(operand) ? TRY(twins.operand(c.emitter, operand, out->size(), form)) : operand);
  return c.converted(TRY(make_call(c.op, args, c.call.attributes)), form);
}

struct NamedConversion {
  std::string_view op;
  Result<Expr> (*convert)(const Conversion&);
};

constexpr NamedConversion named_conversions[] = {
    {"nn.conv", convert_convolution},
    {"nn.max_pool", convert_pool},
    {"nn.avg_pool", convert_pool},
    {"concat", convert_concat},
    {"strided_slice", convert_slice},
    {"nn.pad", convert_pad},
    {"nn.batch_norm_inference", convert_batch_norm},
    {"permute_dims", convert_permutation},
    {"nn.layer_norm", convert_layer_norm},
};

Result<Expr> convert_value(Layouts& layouts, Emitter& emitter, const Var& var, const Expr& value) {
  if (const auto* item = value.as<TupleGetItem>()) return convert_part(layouts, emitter, var, *item);
  const auto* call = value.as<Call>();
  const Operator* op = call ? callee_operator(*call) : nullptr;
  if (!op) return Expr();
  const Conversion c{layouts, emitter, var, value, *op, *call};
  if (op->name == "split") return convert_split(c);
  if (!as_tensor(value)) return Expr();
  for (const auto& [name, convert] : named_conversions)
    if (op->name == name) return convert(c);
  if (op == &relax::call_tir_operator) return convert_program(c);
  if (op->is_view) return convert_view(c);
  if (op->attributes == relax::attributes_of<ops::ReduceAttributes>()) return convert_reduction(c);
  if (op->fusion <= FusionKind::broadcast && std::holds_alternative<TeExpression>(op->meaning))
    return convert_elementwise(c);
  return Expr();
}

}  // namespace

support::Result<ir::IRModule> convert_layout(ir::IRModule module, const target::Target& target,
                                             const ir::PassContext&) {
  TRY(change_functions(module, [&](const std::string&, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;
    Layouts layouts{module, WantedLayouts(function, target)};
    return rewrite_bindings(function, [&](Emitter& emitter, const Var& var, const Expr& value) {
      return convert_value(layouts, emitter, var, value);
    });
  }));
  return module;
}

}  // namespace lathe::graph
