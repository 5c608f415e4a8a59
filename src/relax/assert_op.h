// assert_op: what must hold when the model runs, of scalars that shapes or read integers give. The model fails unless
// it does; passes keep it whoever uses the values. Its value is an empty tuple.
//
//   c = R.assert_op(n < 3, R.shape([n]), format="the index is {}, it must be less than 3")
#pragma once

#include "relax/operator.h"

namespace lathe::relax {

struct AssertAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "AssertAttributes";
  std::string format;  // each {} stands for the next of the numbers
  static constexpr auto fields() { return std::tuple{field("format", &AssertAttributes::format)}; }
};
// Lowering and the interpreter know this row.
extern const Operator assert_operator;

// A sentence with numbers some of which only the run knows.
class Message {
 public:
  Message& operator<<(std::string_view text);
  Message& operator<<(const ir::Expr& number);
  Message& operator<<(const std::vector<ir::Expr>& shape);
  Message& operator<<(const Message& other);

  const std::string& format() const { return format_; }
  const std::vector<ir::Expr>& numbers() const { return numbers_; }
  // As far as it is known: symbols by their names.
  std::string text() const;

 private:
  std::string format_;
  std::vector<ir::Expr> numbers_;
};

Result<Expr> make_assert(const ir::Expr& condition, const Message& message, ir::Origin origin = {});

struct Assert {
  ir::Expr condition;
  std::vector<ir::Expr> numbers;
  std::string format;
};
std::optional<Assert> as_assert(const Expr& e);

// The format with the values in it.
std::string formatted(const std::string& format, const std::vector<std::string>& values);

}  // namespace lathe::relax
