#include "arith/terms.h"

#include <bit>

namespace lathe::arith {
namespace {

using namespace ir;

bool same_all(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}

bool same_or_absent(const Expr& a, const Expr& b) { return a && b ? same(a, b) : !a && !b; }

int order(auto a, auto b) { return a < b ? -1 : b < a ? 1 : 0; }

uint64_t dtype_key(DType t) { return static_cast<uint64_t>(t.code) << 32 | uint64_t{t.bits} << 16 | t.lanes; }

int compare_all(const std::vector<Expr>& a, const std::vector<Expr>& b, VarNumbers& numbers) {
  if (a.size() != b.size()) return order(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    if (const int c = compare(*a[i], *b[i], numbers)) return c;
  return 0;
}

int number_of(const VarNode& v, VarNumbers& numbers) {
  return numbers.emplace(&v, static_cast<int>(numbers.size())).first->second;
}

}  // namespace

bool same(const ExprNode& x, const ExprNode& y) {
  if (&x == &y) return true;
  if (&x.node_class() != &y.node_class() || x.dtype != y.dtype) return false;
  bool result = false;
  if (visit_binary(x, [&]<class T>(const T& n) { result = same(n.a, as<T>(y).a) && same(n.b, as<T>(y).b); }))
    return result;
  switch (kind_of(x)) {
    case kind<IntImm>:
      return as<IntImm>(x).value == as<IntImm>(y).value;
    case kind<FloatImm>:
      return std::bit_cast<uint64_t>(as<FloatImm>(x).value) == std::bit_cast<uint64_t>(as<FloatImm>(y).value);
    case kind<StringImm>:
      return as<StringImm>(x).value == as<StringImm>(y).value;
    case kind<GlobalVar>:
      return as<GlobalVar>(x).name == as<GlobalVar>(y).name;
    case kind<Cast>:
      return same(as<Cast>(x).value, as<Cast>(y).value);
    case kind<Not>:
      return same(as<Not>(x).a, as<Not>(y).a);
    case kind<Select>: {
      const auto &s = as<Select>(x), &t = as<Select>(y);
      return same(s.condition, t.condition) && same(s.true_value, t.true_value) && same(s.false_value, t.false_value);
    }
    case kind<Ramp>:
      return same(as<Ramp>(x).base, as<Ramp>(y).base) && same(as<Ramp>(x).stride, as<Ramp>(y).stride);
    case kind<Broadcast>:
      return same(as<Broadcast>(x).value, as<Broadcast>(y).value);
    case kind<Shuffle>:
      return as<Shuffle>(x).indices == as<Shuffle>(y).indices &&
             same_all(as<Shuffle>(x).vectors, as<Shuffle>(y).vectors);
    case kind<BufferLoad>: {
      const auto &s = as<BufferLoad>(x), &t = as<BufferLoad>(y);
      return s.buffer == t.buffer && same_all(s.indices, t.indices) && same_or_absent(s.predicate, t.predicate);
    }
    case kind<Call>: {
      const auto &s = as<Call>(x), &t = as<Call>(y);
      return s.op == t.op && s.op->effect == Effect::pure && s.op != &intrinsic::undef && same_all(s.args, t.args);
    }
    default:
      return false;
  }
}

int compare(const ExprNode& x, const ExprNode& y, VarNumbers& numbers) {
  if (&x == &y) return 0;
  if (const int c = order(kind_of(x), kind_of(y))) return c;
  if (const int c = order(dtype_key(x.dtype), dtype_key(y.dtype))) return c;
  int result = 0;
  if (visit_binary(x, [&]<class T>(const T& n) {
        result = compare(*n.a, *as<T>(y).a, numbers);
        if (!result) result = compare(*n.b, *as<T>(y).b, numbers);
      }))
    return result;
  switch (kind_of(x)) {
    case kind<VarNode>: {
      if (const int c = as<VarNode>(x).name.compare(as<VarNode>(y).name)) return c;
      const int left = number_of(as<VarNode>(x), numbers);
      return order(left, number_of(as<VarNode>(y), numbers));
    }
    case kind<IntImm>:
      return order(as<IntImm>(x).value, as<IntImm>(y).value);
    case kind<FloatImm>:
      return order(std::bit_cast<uint64_t>(as<FloatImm>(x).value), std::bit_cast<uint64_t>(as<FloatImm>(y).value));
    case kind<StringImm>:
      return as<StringImm>(x).value.compare(as<StringImm>(y).value);
    case kind<GlobalVar>:
      return as<GlobalVar>(x).name.compare(as<GlobalVar>(y).name);
    case kind<Cast>:
      return compare(*as<Cast>(x).value, *as<Cast>(y).value, numbers);
    case kind<Not>:
      return compare(*as<Not>(x).a, *as<Not>(y).a, numbers);
    case kind<Broadcast>:
      return compare(*as<Broadcast>(x).value, *as<Broadcast>(y).value, numbers);
    case kind<Select>: {
      const auto &s = as<Select>(x), &t = as<Select>(y);
      if (const int c = compare(*s.condition, *t.condition, numbers)) return c;
      if (const int c = compare(*s.true_value, *t.true_value, numbers)) return c;
      return compare(*s.false_value, *t.false_value, numbers);
    }
    case kind<Ramp>: {
      if (const int c = compare(*as<Ramp>(x).base, *as<Ramp>(y).base, numbers)) return c;
      return compare(*as<Ramp>(x).stride, *as<Ramp>(y).stride, numbers);
    }
    case kind<BufferLoad>: {
      const auto &s = as<BufferLoad>(x), &t = as<BufferLoad>(y);
      if (const int c = s.buffer->name.compare(t.buffer->name)) return c;
      if (const int c = compare(*s.buffer->data, *t.buffer->data, numbers)) return c;
      return compare_all(s.indices, t.indices, numbers);
    }
    case kind<Call>: {
      const auto &s = as<Call>(x), &t = as<Call>(y);
      if (const int c = s.op->name.compare(t.op->name)) return c;
      return compare_all(s.args, t.args, numbers);
    }
    default:
      return 0;
  }
}

}  // namespace lathe::arith
