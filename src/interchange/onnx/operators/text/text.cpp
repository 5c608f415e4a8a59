// Operators on strings.
#include "interchange/onnx/operators/text/text.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/control/loop.h"
#include "interchange/onnx/operators/tables.h"
#include "relax/infer.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace {

Expr broadcast(NodeImport& c, const Expr& x, const Shape& shape) {
  if (relax::same_shape(*relax::as_tensor(x)->shape, shape)) return x;
  return c.call(ops::broadcast_to, {x, shape_expr(shape)});
}

void string_concat(NodeImport& c) {
  relax::Assumptions assumptions;
  const Shape shape = relax::broadcast_shapes(c.shape(0), c.shape(1), &assumptions).value_or_throw();
  c.set(c.call(ops::string_concat, {broadcast(c, c.input(0), shape), broadcast(c, c.input(1), shape)}));
}

// The parts along a new last axis, which is as long as the most parts of one string.
void string_split(NodeImport& c) {
  const ir::Value::Map attributes{{"delimiter", c.attributes.text("delimiter", "")},
                                  {"most", c.attributes.has("maxsplit") ? c.attributes.integer("maxsplit", 0) : -1}};
  const Expr both = c.builder().emit(c.call(ops::string_split, {c.input(0)}, attributes));
  const Shape own = c.shape(0);
  Extents extents(own.begin(), own.end());
  extents.emplace_back();
  c.set(0, named(c, c.builder().tuple_item(both, 0), extents, "parts"));
  if (c.wants(1)) c.set(1, c.builder().tuple_item(both, 1));
}

void string_normalizer(NodeImport& c) {
  const std::string letter_case = c.attributes.word("case_change_action", {"NONE", "LOWER", "UPPER"});
  c.attributes.ignore("locale");  // mappings of case are Unicode's, whatever the place
  ir::Value::List stop_words;
  for (const std::string& word : c.attributes.texts("stopwords").value_or(std::vector<std::string>{}))
    stop_words.emplace_back(word);
  const int64_t rank = c.rank(0);
  if (rank != 1 && rank != 2)
    c.fail(codes::wrong_node, "strings are normalized in a vector or in one row, but the input has " +
                                  std::to_string(rank) + " dimensions");
  if (const auto rows = rank == 2 ? ir::as_int(c.shape(0)[0]) : std::nullopt; rows && *rows != 1)
    c.fail(codes::wrong_node, "strings are normalized in one row, but the input has " + std::to_string(*rows));
  const Expr x = rank == 2 ? c.with_extent(c.input(0), 0, 1) : c.input(0);
  const Expr made = c.call(ops::string_normalize, {x},
                           {{"letter_case", letter_case == "NONE"    ? "none"
                                            : letter_case == "LOWER" ? "lower"
                                                                     : "upper"},
                            {"is_case_sensitive", c.attributes.flag("is_case_sensitive", false)},
                            {"stop_words", std::move(stop_words)}});
  c.set(named(c, made, rank == 2 ? Extents{ir::int64(1), std::nullopt} : Extents(1), "kept"));
}

void regex_full_match(NodeImport& c) {
  if (!c.attributes.has("pattern")) c.fail(codes::wrong_attribute, "the attribute 'pattern' is missing");
  c.set(c.call(ops::string_match, {c.input(0)}, {{"pattern", c.attributes.text("pattern", "")}}));
}

const OperatorRow text_rows[] = {
    {"StringConcat", {20}, 2, 2, 1, string_concat},
    {"StringSplit", {20}, 1, 1, 2, string_split},
    {"StringNormalizer", {10}, 1, 1, 1, string_normalizer},
    {"RegexFullMatch", {20}, 1, 1, 1, regex_full_match},
};

}  // namespace

Expr as_text(NodeImport& c, const Expr& numbers) {
  const DType from = relax::as_tensor(numbers)->dtype;
  if (from.is_floating() && from.bits < 32)
    c.fail(codes::unsupported, "numbers of " + from.str() + " as strings, which Lathe does not compile");
  const bool is_direct = from.is_floating() || from.is_bool();
  const DType wide = is_direct ? from : from.is_uint() ? DType::uint(64) : DType::int64();
  return c.call(ops::string_of_number, {c.cast(numbers, wide)});
}

Expr as_number(NodeImport& c, const Expr& texts, DType dtype) {
  if (!dtype.is_integer() && !dtype.is_floating())
    c.fail(codes::unsupported, "strings as " + dtype.str() + ", which Lathe does not compile");
  ir::Value::Map attributes{{"dtype", dtype.is_integer() ? DType::int64() : DType::float_(64)}};
  if (dtype.is_integer()) {
    attributes["least"] = ir::min_integer(dtype);
    attributes["greatest"] = ir::max_integer(dtype);
  }
  return c.cast(c.call(ops::number_of_string, {texts}, attributes), dtype);
}

Table text() { return text_rows; }

}  // namespace lathe::onnx::operators
