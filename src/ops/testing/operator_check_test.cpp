#include "ops/testing/operator_check.h"

#include "relax/block_builder.h"
#include "relax/interpret/evaluate.h"
#include "relax/verify.h"

namespace lathe::ops::testing {

int64_t Array::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t Array::offset(const Extents& index) const {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

double rounded(DType dtype, double value) {
  if (dtype.is_floating()) return ir::round_to(dtype, value);
  if (dtype.is_bool()) return value != 0;
  const int64_t wrapped = ir::wrap_integer(static_cast<int64_t>(value), dtype);
  return dtype == DType::uint(64) ? static_cast<double>(static_cast<uint64_t>(wrapped)) : static_cast<double>(wrapped);
}

Array zeros(DType dtype, Extents shape) {
  Array a{dtype, std::move(shape), {}};
  a.values.resize(static_cast<size_t>(a.elements()));
  return a;
}

Array array(DType dtype, Extents shape, std::vector<double> values) {
  Array a{dtype, std::move(shape), std::move(values)};
  EXPECT_EQ(a.elements(), static_cast<int64_t>(a.values.size()));
  for (double& v : a.values) v = rounded(dtype, v);
  return a;
}

Array random_array(DType dtype, Extents shape, uint64_t seed, double low, double high) {
  std::mt19937_64 random(seed);
  Array a = zeros(dtype, std::move(shape));
  if (dtype.is_uint() && low < 0) low = 0, high = std::max(high, 9.0);
  for (double& v : a.values) {
    v = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
    v = dtype.is_bool() ? static_cast<double>(random() & 1) : rounded(dtype, dtype.is_floating() ? v : std::round(v));
  }
  return a;
}

ir::TensorData to_data(const Array& a) {
  std::string bytes;
  for (const double v : a.values) {
    const uint64_t bits = a.dtype.is_floating() ? ir::encode_float(a.dtype, v)
                          : v > 9e18            ? static_cast<uint64_t>(v)
                                                : static_cast<uint64_t>(static_cast<int64_t>(v));
    bytes.append(reinterpret_cast<const char*>(&bits), static_cast<size_t>(a.dtype.element_bytes()));
  }
  return ir::tensor_data(a.dtype, a.shape, std::move(bytes));
}

Array from_data(const ir::TensorData& data) {
  Array a = zeros(data->dtype, data->shape);
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] = ir::float_at(*data, static_cast<int64_t>(i));
  return a;
}

void for_each_index(const Extents& shape, const std::function<void(const Extents&)>& f) {
  for (const int64_t extent : shape)
    if (extent == 0) return;
  Extents index(shape.size(), 0);
  while (true) {
    f(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

Extents broadcast_index(const Extents& shape, const Extents& index) {
  Extents own(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) own[d] = shape[d] == 1 ? 0 : index[index.size() - shape.size() + d];
  return own;
}

Array map(DType dtype, const Extents& shape, const std::vector<Array>& inputs,
          const std::function<double(const std::vector<double>&)>& f) {
  Array out = zeros(dtype, shape);
  for_each_index(shape, [&](const Extents& index) {
    std::vector<double> values;
    for (const Array& input : inputs) values.push_back(input.at(broadcast_index(input.shape, index)));
    out.at(index) = rounded(dtype, f(values));
  });
  return out;
}

namespace {

// Extents as expressions: equal ones from 2 on are one symbol, where wanted.
class ExtentNames {
 public:
  explicit ExtentNames(bool symbolic) : symbolic_(symbolic) {}
  relax::Shape shape(const Extents& extents, bool defines) {
    relax::Shape shape;
    for (const int64_t extent : extents) {
      if (!symbolic_ || extent < 2 || (!defines && !symbols_.count(extent))) {
        shape.push_back(ir::int64(extent));
        continue;
      }
      ir::Var& symbol = symbols_[extent];
      if (!symbol) symbol = ir::size_var("n" + std::to_string(extent));
      shape.push_back(symbol);
    }
    return shape;
  }

 private:
  bool symbolic_;
  std::map<int64_t, ir::Var> symbols_;
};

struct Program {
  relax::BlockBuilder builder;
  std::vector<relax::Var> params;
  std::vector<ir::TensorData> inputs;
  std::vector<relax::Expr> args;
};

Program program_of(const std::vector<Argument>& args, bool symbolic) {
  Program p;
  ExtentNames names(symbolic);
  for (const Argument& arg : args)
    if (const auto* a = std::get_if<Array>(&arg)) names.shape(a->shape, true);
  for (const Argument& arg : args) {
    if (const auto* a = std::get_if<Array>(&arg)) {
      p.params.push_back(relax::relax_var("x" + std::to_string(p.params.size()),
                                          relax::tensor_info(names.shape(a->shape, true), a->dtype)));
      p.inputs.push_back(to_data(*a));
      p.args.push_back(p.params.back());
    } else if (const auto* extents = std::get_if<Extents>(&arg)) {
      p.args.push_back(ir::make<relax::ShapeExpr>(names.shape(*extents, false)));
    } else {
      p.args.emplace_back();
    }
  }
  return p;
}

std::vector<ir::TensorData> run_once(const Operator& op, const std::vector<Argument>& args,
                                     const relax::AttributesRef& attributes, bool symbolic) {
  Program p = program_of(args, symbolic);
  p.builder.begin_function("main", p.params);
  p.builder.begin_dataflow();
  relax::Expr y = p.builder.call(op, p.args, attributes).value_or_throw();
  y = p.builder.emit_output(y);
  p.builder.end_function(y);
  const ir::IRModule module = p.builder.finish();
  EXPECT_EQ(support::render(relax::verify(module)), "");
  return relax::evaluate(module, "main", p.inputs).value_or_throw();
}

}  // namespace

std::vector<Array> run(const Operator& op, const std::vector<Argument>& args, relax::AttributesRef attributes,
                       const RunOptions& options) {
  std::vector<Array> outputs;
  try {
    const std::vector<ir::TensorData> fixed = run_once(op, args, attributes, false);
    for (const ir::TensorData& data : fixed) outputs.push_back(from_data(data));
    if (!options.symbolic) return outputs;
    const std::vector<ir::TensorData> symbolic = run_once(op, args, attributes, true);
    EXPECT_EQ(fixed.size(), symbolic.size());
    for (size_t k = 0; k < fixed.size() && k < symbolic.size(); ++k) {
      EXPECT_EQ(fixed[k]->shape, symbolic[k]->shape) << op.name << " with symbolic extents";
      EXPECT_TRUE(fixed[k]->view() == symbolic[k]->view()) << op.name << " with symbolic extents differs";
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << op.name << ": " << error.what();
    if (outputs.empty()) outputs.assign(4, Array{});
  }
  return outputs;
}

support::Diagnostics refusal(const Operator& op, const std::vector<Argument>& args, relax::AttributesRef attributes) {
  const Program p = program_of(args, false);
  const auto call = relax::make_call(op, p.args, std::move(attributes));
  return call.ok() ? support::Diagnostics{} : call.diagnostics();
}

::testing::AssertionResult close(const Array& actual, const Array& expected, double units, double scale) {
  if (actual.dtype != expected.dtype)
    return ::testing::AssertionFailure() << "dtype " << actual.dtype.str() << ", not " << expected.dtype.str();
  if (actual.shape != expected.shape)
    return ::testing::AssertionFailure() << "shape " << ::testing::PrintToString(actual.shape) << ", not "
                                         << ::testing::PrintToString(expected.shape);
  const DType dtype = expected.dtype;
  const double unit = !dtype.is_floating()  ? 0
                      : dtype.is_bfloat16() ? 0x1p-8
                      : dtype.bits == 16    ? 0x1p-11
                      : dtype.bits == 32    ? 0x1p-24
                                            : 0x1p-53;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double a = actual.values[i], b = expected.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= units * unit * std::max(std::fabs(b), scale)))
      return ::testing::AssertionFailure() << "element " << i << " of " << ::testing::PrintToString(expected.shape)
                                           << " " << dtype.str() << " is " << a << ", not " << b;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace lathe::ops::testing
