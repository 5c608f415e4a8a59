// Classical models (ai.onnx.ml) and what prepares their inputs: tables of values, scaling, n-grams, trees.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build.h"
#include "relax/infer.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

Expr vector_constant(const std::vector<int64_t>& values) {
  return relax::constant(ir::tensor_of<int64_t>(DType::int64(), {static_cast<int64_t>(values.size())}, values));
}

Expr vector_constant(const std::vector<float>& values) {
  return relax::constant(ir::tensor_of<float>(DType::float32(), {static_cast<int64_t>(values.size())}, values));
}

// A vector of numbers or strings.
struct Column {
  Expr values;
  DType dtype;
  int64_t count = 0;
};
Column column_of(const Expr& values) {
  const auto* info = relax::as_tensor(values);
  return {values, info->dtype, info->ndim == 1 ? *ir::as_int((*info->shape)[0]) : -1};
}
Column column_of(std::vector<std::string> texts) {
  const auto count = static_cast<int64_t>(texts.size());
  return column_of(relax::strings(std::move(texts), {count}));
}

// The one of the attributes `<what>_strings`, `<what>_int64s`, `<what>_floats` and `<what>_tensor` that is there.
Column vector_attribute(NodeImport& c, const std::string& what) {
  std::vector<ir::TensorData> given;
  std::vector<Column> texts;
  if (auto v = c.attributes.texts(what + "_strings")) texts.push_back(column_of(std::move(*v)));
  if (auto t = c.attributes.strings(what + "_tensor"))
    texts.push_back(column_of(relax::strings(std::move(t->texts), std::move(t->shape))));
  if (const auto v = c.attributes.integers(what + "_int64s"))
    given.push_back(ir::tensor_of<int64_t>(DType::int64(), {static_cast<int64_t>(v->size())}, *v));
  if (const auto v = c.attributes.numbers(what + "_floats"))
    given.push_back(ir::tensor_of<float>(DType::float32(), {static_cast<int64_t>(v->size())}, *v));
  if (texts.empty())
    if (const auto t = c.attributes.tensor(what + "_tensor")) given.push_back(t);
  if (const size_t times = given.size() + texts.size(); times != 1)
    c.fail(codes::wrong_attribute, "the " + what + " are given " + std::to_string(times) + " times, not once");
  const Column column = texts.empty() ? column_of(relax::constant(given[0])) : texts[0];
  if (column.count < 0) c.fail(codes::wrong_attribute, "the " + what + " are not a vector");
  return column;
}

// The value of each element's key, the last of equal ones, or `missing`. NaN is found as a key.
Expr looked_up(NodeImport& c, const Column& keys, const Column& values, const Expr& missing) {
  if (values.count != keys.count)
    c.fail(codes::wrong_attribute,
           std::to_string(keys.count) + " keys do not go with " + std::to_string(values.count) + " values");
  const DType dtype = c.dtype(0);
  if (keys.dtype != dtype)
    c.fail(codes::wrong_attribute, "keys of " + keys.dtype.str() + " are not found among elements of " + dtype.str());
  const Shape shape = c.shape(0);
  if (keys.count == 0) return c.call(ops::full, {shape_expr(shape), missing});
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::IterVar k = te::reduce_axis(ir::int64(0), ir::int64(keys.count), "k");
    const te::Tensor places = te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr x = in[0](i), key = in[1]({k->var});
          ir::Expr is_same = ir::eq(x, key);
          if (dtype.is_floating()) is_same = ir::logical_or(is_same, ir::logical_and(ir::ne(x, x), ir::ne(key, key)));
          return te::max(ir::select(is_same, k->var, ir::int64(-1)), {k});
        },
        {in[0], in[1]}, "places");
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr found = places(i);
          return ir::select(found < 0, in[3]({}), in[2]({ir::max(found, ir::int64(0))}));
        },
        {places, in[2], in[3]}, "labels")};
  };
  const Expr found =
      c.builder().call_te("looked_up", {c.input(0), keys.values, values.values, missing}, make).value_or_throw();
  return values.dtype == relax::string_dtype ? c.call(relax::as_strings_operator, {found}) : found;
}

Expr text_scalar(std::string text) { return relax::strings({std::move(text)}, {}); }

void label_encoder(NodeImport& c) {
  const Column keys = vector_attribute(c, "keys"), values = vector_attribute(c, "values");
  const DType result = values.dtype;
  const bool is_text = result == relax::string_dtype;
  Expr missing;
  if (auto texts = c.attributes.strings("default_tensor"))
    missing = relax::strings(std::move(texts->texts), std::move(texts->shape));
  else if (const ir::TensorData numbers = c.attributes.tensor("default_tensor"))
    missing = relax::constant(numbers);
  if (const auto* given = missing ? relax::as_tensor(missing) : nullptr) {
    const auto shape = *relax::constant_shape(*given->shape);
    const bool is_one = std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent == 1; });
    if (!is_one || given->dtype != result)
      c.fail(codes::wrong_attribute, "the default is not one element of the values' type, " + result.str());
    missing = c.reshape(missing, {});
  } else if (is_text) {
    missing = text_scalar(c.attributes.text("default_string", "_Unused"));
  } else {
    missing = c.scalar(result, result.is_floating() ? c.attributes.number("default_float", -0.0)
                                                    : static_cast<double>(c.attributes.integer("default_int64", -1)));
  }
  for (const char* other : {"default_string", "default_int64", "default_float"}) c.attributes.ignore(other);
  c.set(looked_up(c, keys, values, missing));
}

// Strings as integers, or integers as strings, by a list of pairs.
void category_mapper(NodeImport& c) {
  const auto texts = c.attributes.texts("cats_strings");
  const auto numbers = c.attributes.integers("cats_int64s");
  if (!texts || !numbers)
    c.fail(codes::wrong_attribute, "the attributes 'cats_strings' and 'cats_int64s' are both needed");
  const Column words = column_of(*texts), integers = column_of(vector_constant(*numbers));
  const std::string text = c.attributes.text("default_string", "_Unused");
  const int64_t number = c.attributes.integer("default_int64", -1);
  if (c.dtype(0) == relax::string_dtype)
    c.set(looked_up(c, words, integers, relax::constant(ir::tensor_of<int64_t>(DType::int64(), {}, {number}))));
  else
    c.set(looked_up(c, integers, words, text_scalar(text)));
}

// A vector of one number, or of one for each feature, the last dimension.
Expr for_features(NodeImport& c, const std::vector<float>& numbers, std::string_view name) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (count != 1) {
    if (c.rank(0) < 1) c.fail(codes::wrong_node, "a scalar has no features");
    if (count < 1) c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' is empty");
    build::expect_equal(c.builder(), c.shape(0).back(), ir::int64(count));
  }
  return vector_constant(numbers);
}

ir::Expr of_feature(const te::Tensor& numbers, const std::vector<ir::Expr>& at) {
  return numbers({ir::is_int(numbers.shape()[0], 1) ? ir::int64(0) : at.back()});
}

void scaler(NodeImport& c) {
  const auto offset = c.attributes.numbers("offset"), scale = c.attributes.numbers("scale");
  const Shape shape = c.shape(0);
  const std::vector<Expr> operands{c.input(0), for_features(c, offset.value_or(std::vector{0.0f}), "offset"),
                                   for_features(c, scale.value_or(std::vector{1.0f}), "scale")};
  const DType single = DType::float32(), wide = c.dtype(0) == single ? single : DType::float_(64);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr away = ir::cast(wide, in[0](i)) - ir::cast(wide, of_feature(in[1], i));
          return ir::cast(single, away * ir::cast(wide, of_feature(in[2], i)));
        },
        in, "scaled")};
  };
  c.set(c.builder().call_te("scaler", operands, make).value_or_throw());
}

// One value of the input replaced by another.
void imputer(NodeImport& c) {
  const DType dtype = c.dtype(0);
  const bool is_float = dtype.is_floating();
  Expr by;
  ir::Expr old;
  if (is_float) {
    const auto given = c.attributes.numbers("imputed_value_floats");
    if (!given) c.fail(codes::wrong_attribute, "the attribute 'imputed_value_floats' is missing");
    by = for_features(c, *given, "imputed_value_floats");
    old = ir::constant(dtype, c.attributes.number("replaced_value_float", 0));
  } else {
    const auto given = c.attributes.integers("imputed_value_int64s");
    if (!given) c.fail(codes::wrong_attribute, "the attribute 'imputed_value_int64s' is missing");
    for_features(c, std::vector<float>(given->size()), "imputed_value_int64s");
    by = vector_constant(*given);
    old = ir::constant(dtype, c.attributes.integer("replaced_value_int64", 0));
  }
  for (const char* other : {"replaced_value_int64", "replaced_value_float"}) c.attributes.ignore(other);
  const bool is_nan = is_float && std::isnan(ir::as_float(old).value_or(0));
  const Shape shape = c.shape(0);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr x = in[0](i), is_old = is_nan ? ir::ne(x, x) : ir::eq(x, old);
          return ir::select(is_old, ir::cast(dtype, of_feature(in[1], i)), x);
        },
        in, "imputed")};
  };
  c.set(c.builder().call_te("imputer", {c.input(0), by}, make).value_or_throw());
}

// Rows divided by their largest magnitude, the sum of magnitudes, or the root of the sum of squares; of zeros as is.
void normalizer(NodeImport& c) {
  const std::string norm = c.attributes.word("norm", {"MAX", "L1", "L2"});
  const int64_t rank = c.rank(0);
  if (rank < 1 || rank > 2)
    c.fail(codes::wrong_node, "rows have 1 or 2 dimensions, but the input has " + std::to_string(rank));
  const Shape shape = c.shape(0);
  Shape rows(shape.begin(), shape.end() - 1);
  const DType single = DType::float32(), wide = c.dtype(0) == single ? single : DType::float_(64);
  if (norm == "MAX" && ir::is_int(shape.back(), 0)) return c.set(c.cast(c.input(0), single));
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::IterVar k = te::reduce_axis(ir::int64(0), shape.back(), "k");
    const te::Tensor sizes = te::compute(
        rows,
        [&](const std::vector<ir::Expr>& i) {
          std::vector<ir::Expr> at = i;
          at.push_back(k->var);
          const ir::Expr x = ir::cast(wide, in[0](at));
          if (norm == "L2") return te::sum(x * x, {k});
          const ir::Expr magnitude = ir::call(ir::intrinsic::abs, x);
          return norm == "L1" ? te::sum(magnitude, {k}) : te::max(magnitude, {k});
        },
        in, "sizes");
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr x = ir::cast(wide, in[0](i)), own = sizes({i.begin(), i.end() - 1});
          const ir::Expr size = norm == "L2" ? ir::call(ir::intrinsic::sqrt, own) : own;
          return ir::cast(single, ir::select(ir::eq(size, ir::constant(wide, 0)), x, ir::div(x, size)));
        },
        {in[0], sizes}, "normalized")};
  };
  c.set(c.builder().call_te("normalizer", {c.input(0)}, make).value_or_throw());
}

constexpr std::string_view of_classical_models = "ai.onnx.ml";

// The n-grams of a vocabulary: `size` elements each, filled up to the longest, and the columns that count them. Of
// strings the elements are places in `texts`.
struct Grams {
  std::vector<std::string> texts;
  bool is_text = false;
  std::vector<int64_t> elements, sizes;
  int64_t longest = 1, columns = 0, most_in_column = 1;
  std::vector<int64_t> of_column;  // [columns, most_in_column], -1 where there is no more
};

Grams read_grams(NodeImport& c) {
  const auto list = [&](std::string_view name) {
    auto given = c.attributes.integers(name);
    if (!given) c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' is missing");
    return *given;
  };
  Grams grams;
  std::vector<int64_t> pool;
  if (auto texts = c.attributes.texts("pool_strings")) {
    grams.is_text = true;
    std::map<std::string, int64_t> place_of;
    for (const std::string& text : *texts) {
      const auto [place, is_new] = place_of.try_emplace(text, static_cast<int64_t>(grams.texts.size()));
      if (is_new) grams.texts.push_back(text);
      pool.push_back(place->second);
    }
  } else {
    pool = list("pool_int64s");
  }
  if (grams.is_text != (c.dtype(0) == relax::string_dtype))
    c.fail(codes::wrong_attribute, std::string("the n-grams are ") + (grams.is_text ? "strings" : "numbers") +
                                       ", but the input holds " + (grams.is_text ? "numbers" : "strings"));
  const std::vector<int64_t> starts = list("ngram_counts"), columns = list("ngram_indexes");
  const int64_t least = c.attributes.integer("min_gram_length"), most = c.attributes.integer("max_gram_length");
  constexpr int64_t longest_gram = 64, most_columns = int64_t{1} << 24;
  if (least < 1 || most < least || most > longest_gram)
    c.fail(codes::wrong_attribute, "n-grams of " + std::to_string(least) + " to " + std::to_string(most) + " elements");
  grams.longest = most;
  std::map<std::vector<int64_t>, int64_t> column_of;  // of equal n-grams the last one counts
  size_t number = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    const auto size = static_cast<int64_t>(n), all = static_cast<int64_t>(pool.size());
    const int64_t begin = starts[n - 1], end = n < starts.size() ? starts[n] : all;
    if (begin < 0 || end < begin || end > all || (end - begin) % size != 0)
      c.fail(codes::wrong_attribute, "n-grams of " + std::to_string(size) + " elements from " + std::to_string(begin) +
                                         " to " + std::to_string(end) + " of a pool of " + std::to_string(all));
    for (int64_t at = begin; at < end; at += size, ++number) {
      if (number >= columns.size() || columns[number] < 0 || columns[number] >= most_columns)
        c.fail(codes::wrong_attribute,
               "the attribute 'ngram_indexes' has no column for the n-gram " + std::to_string(number));
      if (size >= least && size <= most) column_of[{pool.begin() + at, pool.begin() + at + size}] = columns[number];
    }
  }
  for (const int64_t column : columns) grams.columns = std::max(grams.columns, column + 1);
  std::map<int64_t, std::vector<int64_t>> in_column;
  for (const auto& [gram, column] : column_of) {
    in_column[column].push_back(static_cast<int64_t>(grams.sizes.size()));
    grams.most_in_column = std::max(grams.most_in_column, static_cast<int64_t>(in_column[column].size()));
    grams.sizes.push_back(static_cast<int64_t>(gram.size()));
    grams.elements.insert(grams.elements.end(), gram.begin(), gram.end());
    grams.elements.resize(grams.sizes.size() * static_cast<size_t>(most));
  }
  if (grams.columns * grams.most_in_column > most_columns)
    c.fail(codes::too_large, std::to_string(grams.most_in_column) + " n-grams are counted in one column");
  grams.of_column.assign(static_cast<size_t>(grams.columns * grams.most_in_column), -1);
  for (const auto& [column, members] : in_column)
    std::copy(members.begin(), members.end(), grams.of_column.begin() + column * grams.most_in_column);
  return grams;
}

// How often each n-gram is met in x [rows, length], its elements being up to `skips` others apart: [rows, n-grams].
te::Tensor count_grams(const te::Tensor& x, const te::Tensor& elements, const te::Tensor& sizes, int64_t longest,
                       int64_t skips) {
  const ir::Expr length = x.shape()[1], one = ir::int64(1);
  const te::IterVar first = te::reduce_axis(ir::int64(0), ir::max(length, one), "first");
  const te::IterVar skip = te::reduce_axis(ir::int64(0), ir::int64(skips + 1), "skip");
  return te::compute(
      {x.shape()[0], sizes.shape()[0]},
      [&](const std::vector<ir::Expr>& i) {
        const ir::Expr size = sizes({i[1]}), step = skip->var + 1;
        // A single element is met once, whatever is skipped.
        ir::Expr is_met = ir::logical_and(first->var + (size - 1) * step < length,
                                          ir::logical_or(size > 1, ir::eq(skip->var, ir::int64(0))));
        for (int64_t k = 0; k < longest; ++k) {
          const ir::Expr at = first->var + step * k, here = ir::logical_and(ir::int64(k) < size, is_met);
          const ir::Expr same = ir::eq(ir::cast(DType::int64(), x({i[0], at})), elements({i[1], ir::int64(k)}));
          is_met = ir::if_then_else(here, same, is_met);
        }
        return te::sum(ir::cast(DType::int64(), is_met), {first, skip});
      },
      {x, elements, sizes}, "gram_counts");
}

// Counts of n-grams, or (IDF) whether they are there, weighted: [columns], or a row for each row of the input. Weights
// are those of columns, as the reference has it.
void tfidf_vectorizer(NodeImport& c) {
  const std::string mode = c.attributes.word("mode", {"TF", "IDF", "TFIDF"});
  const int64_t skips = c.attributes.integer("max_skip_count");
  if (skips < 0 || skips > std::numeric_limits<int32_t>::max())
    c.fail(codes::wrong_attribute, "the attribute 'max_skip_count' is " + std::to_string(skips));
  const Grams grams = read_grams(c);
  const auto given = c.attributes.numbers("weights");
  if (given && mode != "TF" && static_cast<int64_t>(given->size()) != grams.columns)
    c.fail(codes::wrong_attribute, "the attribute 'weights' has " + std::to_string(given->size()) + " numbers for " +
                                       std::to_string(grams.columns) + " columns");
  const int64_t rank = c.rank(0);
  if (rank != 1 && rank != 2)
    c.fail(codes::wrong_node, "TfIdfVectorizer takes 1 or 2 dimensions, but its input has " + std::to_string(rank));
  const Shape own = c.shape(0);
  const Expr x = c.reshape(c.input(0), {rank == 1 ? ir::int64(1) : own[0], own.back()});
  const ir::Expr columns = ir::int64(grams.columns);
  Shape shape{build::shape_of(x)[0], columns};
  if (grams.sizes.empty()) {
    const Expr none = c.call(ops::full, {shape_expr(shape), c.scalar(DType::float32(), 0)});
    return c.set(rank == 1 ? c.reshape(none, {columns}) : none);
  }
  const auto count = static_cast<int64_t>(grams.sizes.size());
  std::vector<std::string> texts;
  for (const int64_t place : grams.is_text ? grams.elements : std::vector<int64_t>())
    texts.push_back(grams.texts[static_cast<size_t>(place)]);
  const Expr elements =
      grams.is_text ? relax::strings(std::move(texts), {count, grams.longest})
                    : relax::constant(ir::tensor_of<int64_t>(DType::int64(), {count, grams.longest}, grams.elements));
  const Expr of_column =
      relax::constant(ir::tensor_of<int64_t>(DType::int64(), {grams.columns, grams.most_in_column}, grams.of_column));
  const Expr weights =
      vector_constant(given && mode != "TF" ? *given : std::vector<float>(static_cast<size_t>(grams.columns), 1.0f));
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::Tensor counts = count_grams(in[0], in[1], in[2], grams.longest, skips);
    const te::IterVar k = te::reduce_axis(ir::int64(0), ir::int64(grams.most_in_column), "k");
    const te::Tensor sums = te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr gram = in[3]({i[1], k->var});
          const ir::Expr met = counts({i[0], ir::max(gram, ir::int64(0))});
          return te::sum(ir::select(gram >= 0, met, ir::int64(0)), {k});
        },
        {counts, in[3]}, "column_counts");
    return std::vector{te::compute(
        shape,
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr met = sums(i);
          const ir::Expr often = mode == "IDF" ? ir::min(met, ir::int64(1)) : met;
          return ir::cast(DType::float32(), often) * in[4]({i[1]});
        },
        {sums, in[4]}, "weighted")};
  };
  const Expr y = c.builder()
                     .call_te("tfidf_vectorizer", {x, elements, vector_constant(grams.sizes), of_column, weights}, make)
                     .value_or_throw();
  c.set(rank == 1 ? c.reshape(y, {columns}) : y);
}

const OperatorRow classical_rows[] = {
    {"LabelEncoder", {2, 4}, 1, 1, 1, label_encoder, nullptr, of_classical_models},
    {"CategoryMapper", {1}, 1, 1, 1, category_mapper, nullptr, of_classical_models},
    {"Scaler", {1}, 1, 1, 1, scaler, nullptr, of_classical_models},
    {"Imputer", {1}, 1, 1, 1, imputer, nullptr, of_classical_models},
    {"Normalizer", {1}, 1, 1, 1, normalizer, nullptr, of_classical_models},
    {"TfIdfVectorizer", {9}, 1, 1, 1, tfidf_vectorizer},
};

}  // namespace

Table classical() { return classical_rows; }

}  // namespace lathe::onnx::operators
