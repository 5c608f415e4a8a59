#include "schedule/testing/random_program.h"

namespace lathe::schedule::testing {

namespace {

class Source {
 public:
  explicit Source(std::mt19937& random) : random_(random) {}

  Function program(const RandomProgramOptions& options) {
    element_ = options.element;
    if (options.wished == "padding") wished_ = 1;
    if (options.wished == "reduction") wished_ = 3;
    if (options.wished == "window") wished_ = 4;
    const size_t rank = 1 + pick(3);
    std::vector<int64_t> shape;
    for (size_t d = 0; d < rank; ++d) shape.push_back(extent());
    values_.push_back({builder_.input("X0", exprs(shape), element_), shape});
    values_.push_back({builder_.input("X1", exprs(shape), element_), shape});
    const size_t count = 1 + pick(4) + (wished_ ? 1 : 0);
    for (size_t i = 0; i < count; ++i) block(i, i + 1 == count);
    for (size_t i = 0; options.reads_everything && i < values_.size(); ++i) {
      const Value value = values_[i];
      if (value.read || builder_.is_parameter(value.buffer)) continue;
      const Buffer kept = builder_.output(fmt::format("K{}", i), exprs(value.shape), element_);
      builder_.compute(kept->name, kept, [&](const std::vector<Expr>& at) { return load(value.buffer, at); });
    }
    return builder_.build();
  }

 private:
  struct Value {
    Buffer buffer;
    std::vector<int64_t> shape;
    bool read = false;
  };
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  int64_t extent() {
    static constexpr int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 12, 13};
    // Zero now and then: such programs do nothing.
    const size_t index = pick(40);
    return index == 0 ? 0 : sizes[1 + pick(9)];
  }
  static std::vector<Expr> exprs(const std::vector<int64_t>& shape) {
    std::vector<Expr> result;
    for (const int64_t n : shape) result.push_back(int64(n));
    return result;
  }
  Expr imm(int64_t value) {
    if (element_.is_floating() && value != 0) return constant(element_, static_cast<double>(value) + 0.1);
    return constant(element_, value);
  }

  Buffer make(const std::string& name, const std::vector<int64_t>& shape, bool last) {
    // A middle result is sometimes an output too.
    return last || pick(8) == 0 ? builder_.output(name, exprs(shape), element_)
                                : builder_.inner(name, exprs(shape), element_);
  }

  // `source` at indices of an output of shape `shape`: itself, or with what does not fit broadcast.
  Expr read(const Value& source, const std::vector<Expr>& indices, const std::vector<int64_t>& shape) {
    std::vector<Expr> at;
    for (size_t d = 0; d < source.shape.size(); ++d) {
      Expr index = int64(0);
      for (size_t o = 0; o < shape.size(); ++o)
        if (shape[o] == source.shape[d] && (o == d || shape.size() != source.shape.size())) index = indices[o];
      if (source.shape[d] == 0) return imm(3);
      at.push_back(index);
    }
    return load(source.buffer, at);
  }

  void block(size_t number, bool last) {
    const std::string name = fmt::format("B{}", number);
    const size_t from = pick(3) ? values_.size() - 1 : pick(values_.size());
    const Value source = values_[from];
    const std::vector<int64_t>& shape = source.shape;
    Value result{{}, shape};
    switch (number == 1 && wished_ ? *std::exchange(wished_, std::nullopt) : pick(6)) {
      case 0: {  // transposed
        std::reverse(result.shape.begin(), result.shape.end());
        result.buffer = make(name, result.shape, last);
        builder_.compute(name, result.buffer, [&](const std::vector<Expr>& i) {
          return load(source.buffer, std::vector<Expr>(i.rbegin(), i.rend())) * imm(3);
        });
        break;
      }
      case 1: {  // padded by one on each side of the last dimension
        result.shape.back() += 2;
        result.buffer = make(name, result.shape, last);
        builder_.compute(name, result.buffer, [&](std::vector<Expr> i) {
          const Expr at = i.back() - 1;
          i.back() = at;
          return if_then_else(logical_and(at >= 0, at < shape.back()), load(source.buffer, i), imm(0));
        });
        break;
      }
      case 2: {  // neighbours added along the first dimension, where there are any
        if (shape[0] < 2) return block(number, last);
        result.shape[0] -= 1;
        result.buffer = make(name, result.shape, last);
        builder_.compute(name, result.buffer, [&](std::vector<Expr> i) {
          const Expr here = load(source.buffer, i);
          i[0] = i[0] + 1;
          return here - load(source.buffer, i);
        });
        break;
      }
      case 3: {  // reduced over the last axis
        if (shape.size() < 2) return block(number, last);
        result.shape.pop_back();
        result.buffer = make(name, result.shape, last);
        const bool sum = pick(2);
        const auto body = [&](const std::vector<Expr>& i) { return load(source.buffer, i); };
        if (sum)
          builder_.sum(name, result.buffer, {{"k", int64(shape.back())}}, body);
        else
          builder_.max(name, result.buffer, {{"k", int64(shape.back())}}, body);
        break;
      }
      case 4: {  // a product of matrices, or an outer sum over windows
        const int64_t window = 1 + static_cast<int64_t>(pick(3));
        if (shape.back() < window) return block(number, last);
        result.shape.back() -= window - 1;
        result.buffer = make(name, result.shape, last);
        builder_.sum(name, result.buffer, {{"w", int64(window)}}, [&](std::vector<Expr> i) {
          const Expr w = i.back();
          i.pop_back();
          i.back() = i.back() + w;
          return load(source.buffer, i) * imm(2);
        });
        break;
      }
      default: {  // with another value, broadcast where shapes differ
        result.buffer = make(name, result.shape, last);
        const Value other = values_[pick(values_.size())];
        builder_.compute(name, result.buffer, [&](const std::vector<Expr>& i) {
          return load(source.buffer, i) * imm(2) + read(other, i, shape);
        });
      }
    }
    values_[from].read = true;
    values_.push_back(result);
  }

  std::mt19937& random_;
  Builder builder_;
  std::vector<Value> values_;
  DType element_ = DType::int_(32);
  std::optional<size_t> wished_;
};

}  // namespace

Function random_program(std::mt19937& random, const RandomProgramOptions& options) {
  return Source(random).program(options);
}

}  // namespace lathe::schedule::testing
