#include "tir/testing/differential.h"

namespace lathe::tir::testing {
namespace {

std::unordered_set<const VarNode*> memory_read(const Stmt& body) {
  std::unordered_set<const VarNode*> read;
  const auto note = [&](const NodeRef& n) {
    if (const auto* match = n.as<MatchBufferRegionNode>()) read.insert(match->source->buffer->data.get());
    if (const auto* load = n.as<BufferLoad>()) read.insert(load->buffer->data.get());
  };
  post_order(body, note);
  return read;
}

int64_t extent_of(const Expr& e, const std::map<std::string, int64_t>& symbols) {
  if (const auto value = as_int(e)) return *value;
  VarMap values;
  for (const Var& v : free_vars(e)) {
    const auto it = symbols.find(v->name);
    support::require(it != symbols.end(), "a symbol of a test program without a value");
    values[v] = constant(v->dtype, it->second);
  }
  const Expr folded = rewrite_post_order(substitute(e, values), [](NodeRef n) -> NodeRef {
    if (const auto* x = n.as<Mul>()) return mul(x->a, x->b);
    if (const auto* x = n.as<Add>()) return add(x->a, x->b);
    if (const auto* x = n.as<Sub>()) return sub(x->a, x->b);
    if (const auto* x = n.as<FloorDiv>()) return floordiv(x->a, x->b);
    return n;
  });
  const auto value = as_int(folded);
  support::require(value.has_value(), "an extent of a test program that is not constant");
  return *value;
}

}  // namespace

std::vector<TensorBuffer> random_arguments(const Function& function, uint64_t seed,
                                           const std::map<std::string, int64_t>& symbols) {
  std::mt19937_64 random(seed);
  const auto read = memory_read(function->body);
  std::vector<TensorBuffer> args;
  for (const Var& param : function->params) {
    const Buffer buffer = function->buffer_of(param);
    if (!buffer) continue;
    std::vector<int64_t> shape;
    for (const Expr& extent : buffer->shape) shape.push_back(extent_of(extent, symbols));
    // A parameter that is read may also be read before it is written: give it values.
    TensorBuffer tensor = read.count(buffer->data.get()) ? TensorBuffer::zeros(buffer->dtype, shape)
                                                         : TensorBuffer::uninitialised(buffer->dtype, shape);
    if (read.count(buffer->data.get()))
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        const int64_t value = static_cast<int64_t>(random() % 19) - 9;
        if (buffer->dtype.is_floating())
          tensor.set_float(i, static_cast<double>(value) + 0.25 * static_cast<double>(random() % 4));
        else
          tensor.set_int(i, value);
      }
    args.push_back(std::move(tensor));
  }
  return args;
}

std::vector<int64_t> lowered_scalars(const Function& original, const std::map<std::string, int64_t>& symbols) {
  std::vector<int64_t> scalars;
  const auto add_value = [&](const Var& v) { scalars.push_back(symbols.at(v->name)); };
  for (const Var& param : original->params)
    if (!param->dtype.is_handle()) add_value(param);
  for (const Var& symbol : shape_scalars(original)) add_value(symbol);
  return scalars;
}

std::string difference(const Function& before, const Function& after, uint64_t seed,
                       const std::map<std::string, int64_t>& symbols, const Context* context, double tolerance,
                       const IRModule* module) {
  std::vector<TensorBuffer> expected = random_arguments(before, seed, symbols), actual = expected;
  std::vector<int64_t> scalars = lowered_scalars(before, symbols);
  const size_t own = scalars.size() - shape_scalars(before).size();
  const std::vector<int64_t> original(scalars.begin(), scalars.begin() + static_cast<ptrdiff_t>(own));
  const size_t wanted = after->params.size() - after->buffer_map.size();
  const auto first = interpret(before, expected, original, {.seed = seed, .context = context, .module = module});
  if (!first.ok()) return "invalid: " + support::render(first.diagnostics());
  // An order of parallel iterations that differs from the first run's.
  const auto second = interpret(after, actual, wanted == scalars.size() ? scalars : original,
                                {.seed = seed + 1, .context = context, .module = module});
  if (!second.ok()) return "after: " + support::render(second.diagnostics());
  for (size_t k = 0; k < expected.size(); ++k)
    for (int64_t i = 0; i < expected[k].elements(); ++i) {
      if (expected[k].is_written(i) != actual[k].is_written(i))
        return fmt::format("argument {}, element {}: written {} and {}", k, i, expected[k].is_written(i),
                           actual[k].is_written(i));
      if (!expected[k].is_written(i)) continue;
      const double x = expected[k].float_at(i), y = actual[k].float_at(i);
      if (expected[k].dtype.is_floating() && std::abs(x - y) <= tolerance * std::max({1.0, std::abs(x), std::abs(y)}))
        continue;
      if (!(x == y && std::signbit(x) == std::signbit(y)) && !(std::isnan(x) && std::isnan(y)))
        return fmt::format("argument {}, element {}: {} and {}", k, i, x, y);
    }
  return {};
}

}  // namespace lathe::tir::testing
