#include "ir/match.h"
#include "tir/codes.h"
#include "tir/interpret/machine.h"

namespace lathe::tir::interpreter {
namespace {

std::string numbers(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
  return "[" + text + "]";
}

}  // namespace

void Machine::fail(support::Code code, std::string message) const {
  throw support::DiagnosticError(support::Diagnostic{.code = code, .message = std::move(message)});
}

void Machine::step() {
  if (++steps_ > options_.max_steps)
    fail(codes::step_budget, fmt::format("the program takes more than {} steps", options_.max_steps));
}

// Extents, strides and indices: most are a number or a variable, asked for at every access.
int64_t Machine::evaluate_int(const Expr& e) {
  if (const auto* number = e.as<IntImm>()) return number->value;
  if (const auto* var = e.as<VarNode>()) return variable(*var).first.i;
  return evaluate(e).first.i;
}

const Value& Machine::variable(const VarNode& var) const {
  const auto it = values_.find(&var);
  if (it == values_.end()) fail(codes::undefined_variable, fmt::format("variable '{}' has no value here", var.name));
  return it->second;
}

const Value* Machine::value_of(const Var& var) const {
  const auto it = values_.find(var.get());
  return it == values_.end() ? nullptr : &it->second;
}

Memory* Machine::adopt(std::unique_ptr<Memory> memory) {
  owned_.push_back(std::move(memory));
  return owned_.back().get();
}

const Machine::Pointer& Machine::memory_of(const Buffer& buffer) {
  const auto it = memories_.find(buffer->data.get());
  if (it == memories_.end())
    fail(codes::undefined_variable, fmt::format("buffer '{}' has no memory here", buffer->name));
  return it->second;
}

int64_t Machine::place(const Buffer& buffer, const Pointer& base, support::function_ref<int64_t(size_t)> index,
                       const char* what) {
  const size_t rank = buffer->shape.size();
  int64_t element = 0;
  bool inside = true;
  for (size_t d = 0; d < rank && inside; ++d) {
    const int64_t i = index(d), extent = evaluate_int(buffer->shape[d]);
    inside = i >= 0 && i < extent;
    if (inside)
      element = buffer->strides.empty() ? element * extent + i : element + i * evaluate_int(buffer->strides[d]);
  }
  if (buffer->elem_offset) element += evaluate_int(buffer->elem_offset);
  const int64_t bits = buffer->dtype.storage_bits() * buffer->dtype.lanes;
  if (inside && element >= 0 && base.bit + (element + 1) * bits <= base.memory->size * 8)
    return base.bit + element * bits;
  std::vector<int64_t> position, shape;
  for (size_t d = 0; d < rank; ++d) {
    position.push_back(index(d));
    shape.push_back(evaluate_int(buffer->shape[d]));
  }
  fail(codes::out_of_bounds,
       fmt::format("{} of '{}' at {} is outside its shape {}", what, buffer->name, numbers(position), numbers(shape)));
}

Machine::Places Machine::locate(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate,
                                const char* what) {
  step();
  if (indices.size() != buffer->shape.size())
    fail(codes::rank_mismatch, fmt::format("{} of '{}' with {} indices, which has {} dimensions", what, buffer->name,
                                           indices.size(), buffer->shape.size()));
  // An aliased buffer: its source's element, in the source's coordinates.
  if (const auto it = aliases_.find(buffer.get()); it != aliases_.end()) {
    const Alias alias = it->second;
    const size_t dropped = alias.corner.size() - indices.size();
    std::vector<Expr> moved;
    for (size_t d = 0; d < alias.corner.size(); ++d) {
      const Expr corner = int64(alias.corner[d]);
      moved.push_back(
          d < dropped ? corner
                      : add(cast(DType::int_(64, indices[d - dropped]->dtype.lanes), indices[d - dropped]), corner));
    }
    return locate(alias.source, moved, predicate, what);
  }

  const Pointer base = memory_of(buffer);
  Places places;
  places.memory = base.memory;
  int lanes = 1;
  for (const Expr& e : indices) lanes = std::max<int>(lanes, e->dtype.lanes);
  if (lanes == 1) {
    if (!predicate || holds(predicate))
      places.first = place(buffer, base, [&](size_t d) { return evaluate_int(indices[d]); }, what);
    return places;
  }
  std::vector<Value> index;
  for (const Expr& e : indices) index.push_back(evaluate(e));
  const auto at_lane = [](const Value& value, int k) { return value.lane(value.dtype.is_vector() ? k : 0).i; };
  const std::optional<Value> mask = predicate ? std::optional(evaluate(predicate)) : std::nullopt;
  for (int k = 0; k < lanes; ++k) {
    const bool active = !mask || at_lane(*mask, k) != 0;
    places.lanes.push_back(active ? place(buffer, base, [&](size_t d) { return at_lane(index[d], k); }, what) : -1);
  }
  return places;
}

Value Machine::load(const BufferLoad& load) {
  const Places places = locate(load.buffer, load.indices, load.predicate, "a load");
  const DType element = load.buffer->dtype.element();
  const int64_t bits = element.storage_bits();
  Value result(load.dtype);
  int lane = 0;
  for (const int64_t at : places.at())
    for (int k = 0; k < load.buffer->dtype.lanes; ++k, ++lane) {
      if (at < 0) continue;  // masked off: zero
      if (!places.memory->holds_value(at + k * bits, bits))
        fail(codes::uninitialised_read, fmt::format("element {} of '{}' is read before it is written",
                                                    at / (bits * load.buffer->dtype.lanes), load.buffer->name));
      result.lane(lane) = from_bits(element, read_bits(places.memory->bytes, at + k * bits, bits));
    }
  return result;
}

Value Machine::binary(Operation op, const Expr& a, const Expr& b) {
  const Value x = evaluate(a), y = evaluate(b);
  const DType t = x.dtype;
  if (t != y.dtype) fail(codes::dtype_mismatch, fmt::format("operands of dtype {} and {}", t.str(), y.dtype.str()));
  const bool is_bool = op >= Operation::eq;
  Value result(is_bool ? DType::boolean(t.lanes) : t);
  for (int k = 0; k < t.lanes; ++k) result.lane(k) = compute(op, t.element(), x.lane(k), y.lane(k));
  return result;
}

Value Machine::conditional(const Call& call) {
  const Value condition = evaluate(call.args[0]);
  if (condition.dtype.is_scalar()) return evaluate(call.args[condition.first.i ? 1 : 2]);
  const Value yes = evaluate(call.args[1]), no = evaluate(call.args[2]);
  Value result(call.dtype);
  for (int k = 0; k < call.dtype.lanes; ++k) result.lane(k) = condition.lane(k).i ? yes.lane(k) : no.lane(k);
  return result;
}

Value Machine::lanes_reduced(const Call& call) {
  const Value vector = evaluate(call.args[0]);
  const Operation op = call.op == &intrinsic::vector_reduce_add   ? Operation::add
                       : call.op == &intrinsic::vector_reduce_max ? Operation::max
                                                                  : Operation::min;
  Scalar total = vector.lane(0);
  for (int k = 1; k < vector.dtype.lanes; ++k) total = compute(op, vector.dtype.element(), total, vector.lane(k));
  return Value(call.dtype, total);
}

Value Machine::reinterpreted(const Call& call) {
  const Value from = evaluate(call.args[0]);
  const int64_t from_bits_each = from.dtype.storage_bits(), to_bits_each = call.dtype.storage_bits();
  if (from_bits_each * from.dtype.lanes != to_bits_each * call.dtype.lanes)
    fail(codes::dtype_mismatch,
         fmt::format("reinterpret of {} as {}, of another width", from.dtype.str(), call.dtype.str()));
  std::vector<uint8_t> bytes(static_cast<size_t>((from_bits_each * from.dtype.lanes + 7) / 8));
  for (int k = 0; k < from.dtype.lanes; ++k)
    write_bits(bytes.data(), k * from_bits_each, from_bits_each, to_bits(from.dtype.element(), from.lane(k)));
  Value result(call.dtype);
  for (int k = 0; k < call.dtype.lanes; ++k)
    result.lane(k) = from_bits(call.dtype.element(), read_bits(bytes.data(), k * to_bits_each, to_bits_each));
  return result;
}

Value Machine::call(const Call& call) {
  if (call.op == &intrinsic::if_then_else) return conditional(call);
  if (call.op == &intrinsic::reinterpret) return reinterpreted(call);
  if (call.op == &intrinsic::vector_reduce_add || call.op == &intrinsic::vector_reduce_max ||
      call.op == &intrinsic::vector_reduce_min)
    return lanes_reduced(call);
  if (call.op == &intrinsic::undef) return Value(call.dtype);
  if (call.op == &intrinsic::call_packed) return call_registered(call);
  if (!is_elementwise(*call.op))
    fail(codes::not_interpretable, fmt::format("'{}' has no meaning inside an expression", call.op->name));
  std::vector<Value> args;
  for (const Expr& e : call.args) args.push_back(evaluate(e));
  Value result(call.dtype);
  std::vector<Scalar> lane(args.size());
  for (int k = 0; k < call.dtype.lanes; ++k) {
    for (size_t a = 0; a < args.size(); ++a) lane[a] = args[a].lane(args[a].dtype.is_vector() ? k : 0);
    result.lane(k) = compute(*call.op, call.dtype.element(), args[0].dtype.element(), lane);
  }
  return result;
}

Value Machine::evaluate(const Expr& e) {
  return match_all(
      e, [&](const VarNode& n) { return variable(n); }, [&](const IntImm& n) { return Value(n.dtype, {n.value, 0}); },
      [&](const FloatImm& n) { return Value(n.dtype, {0, n.value}); },
      [&](const StringImm&) -> Value { fail(codes::not_interpretable, "a text is not a value"); },
      [&](const GlobalVar& n) -> Value {
        fail(codes::not_interpretable, fmt::format("the function '{}' is not a value", n.name));
      },
      [&](const Cast& n) {
        const Value from = evaluate(n.value);
        Value result(n.dtype);
        for (int k = 0; k < n.dtype.lanes; ++k)
          result.lane(k) = convert(n.dtype.element(), from.dtype.element(), from.lane(k));
        return result;
      },
      [&](const Add& n) { return binary(Operation::add, n.a, n.b); },
      [&](const Sub& n) { return binary(Operation::sub, n.a, n.b); },
      [&](const Mul& n) { return binary(Operation::mul, n.a, n.b); },
      [&](const Div& n) { return binary(Operation::div, n.a, n.b); },
      [&](const Mod& n) { return binary(Operation::mod, n.a, n.b); },
      [&](const FloorDiv& n) { return binary(Operation::floordiv, n.a, n.b); },
      [&](const FloorMod& n) { return binary(Operation::floormod, n.a, n.b); },
      [&](const Min& n) { return binary(Operation::min, n.a, n.b); },
      [&](const Max& n) { return binary(Operation::max, n.a, n.b); },
      [&](const EQ& n) { return binary(Operation::eq, n.a, n.b); },
      [&](const NE& n) { return binary(Operation::ne, n.a, n.b); },
      [&](const LT& n) { return binary(Operation::lt, n.a, n.b); },
      [&](const LE& n) { return binary(Operation::le, n.a, n.b); },
      [&](const GT& n) { return binary(Operation::gt, n.a, n.b); },
      [&](const GE& n) { return binary(Operation::ge, n.a, n.b); },
      [&](const And& n) { return binary(Operation::and_, n.a, n.b); },
      [&](const Or& n) { return binary(Operation::or_, n.a, n.b); },
      [&](const Not& n) {
        Value result = evaluate(n.a);
        for (int k = 0; k < n.dtype.lanes; ++k) result.lane(k).i = result.lane(k).i == 0;
        return result;
      },
      [&](const Select& n) {
        const Value condition = evaluate(n.condition), yes = evaluate(n.true_value), no = evaluate(n.false_value);
        Value result(n.dtype);
        for (int k = 0; k < n.dtype.lanes; ++k)
          result.lane(k) = condition.lane(condition.dtype.is_vector() ? k : 0).i ? yes.lane(k) : no.lane(k);
        return result;
      },
      [&](const Ramp& n) {
        const Value base = evaluate(n.base), stride = evaluate(n.stride);
        Value result(n.dtype);
        for (int k = 0; k < n.dtype.lanes; ++k)
          result.lane(k).i = wrap_integer(base.first.i + k * stride.first.i, n.dtype.element());
        return result;
      },
      [&](const Broadcast& n) {
        const Value value = evaluate(n.value);
        Value result(n.dtype);
        for (int k = 0; k < n.dtype.lanes; ++k) result.lane(k) = value.first;
        return result;
      },
      [&](const Shuffle& n) {
        std::vector<Scalar> all;
        for (const Expr& vector : n.vectors) {
          const Value v = evaluate(vector);
          for (int k = 0; k < v.dtype.lanes; ++k) all.push_back(v.lane(k));
        }
        Value result(n.dtype);
        for (int k = 0; k < n.dtype.lanes; ++k)
          result.lane(k) = all.at(static_cast<size_t>(n.indices[static_cast<size_t>(k)]));
        return result;
      },
      [&](const Let& n) {
        bind(n.var, evaluate(n.value));
        return evaluate(n.body);
      },
      [&](const BufferLoad& n) { return load(n); }, [&](const Call& n) { return call(n); },
      [&](const Reduce&) -> Value {
        fail(codes::not_interpretable, "a reduction inside an expression is not a tensor program");
      });
}

}  // namespace lathe::tir::interpreter
