#include "driver/report/machine.h"

#include "driver/functions.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::driver {
namespace {

constexpr int64_t steps = 40'000;             // of multiply-adds in a run
constexpr int64_t chains = 12;                // vectors that are added up side by side while memory is read
constexpr int64_t beyond_caches = 256 << 20;  // bytes read to see memory itself

// Each thread keeps `rows` accumulators in registers.
std::string peak_text(int64_t threads, int64_t lanes, int64_t rows) {
  return fmt::format(R"(
@T.prim_func
def main(X: T.Buffer((2, {lanes}), "float32"), Y: T.Buffer(({threads}, {rows}, {lanes}), "float32")):
    for t in T.parallel({threads}):
        with T.block("thread"):
            vt = T.axis.spatial({threads}, t)
            sums = T.alloc_buffer(({rows}, {lanes}), "float32", scope="register")
            for r in T.unroll({rows}):
                for lane in T.vectorized({lanes}):
                    sums[r, lane] = T.float32(0)
            for k in range({steps}):
                for r in T.unroll({rows}):
                    for lane in T.vectorized({lanes}):
                        sums[r, lane] = sums[r, lane] * X[0, lane] + X[1, lane]
            for r in T.unroll({rows}):
                for lane in T.vectorized({lanes}):
                    Y[vt, r, lane] = sums[r, lane]
)",
                     fmt::arg("threads", threads), fmt::arg("lanes", lanes), fmt::arg("rows", rows),
                     fmt::arg("steps", steps));
}

// Each thread adds up its part of X, `passes` times over.
std::string read_text(int64_t threads, int64_t lanes, int64_t vectors, int64_t passes) {
  return fmt::format(R"(
@T.prim_func
def main(X: T.Buffer(({threads}, {vectors}, {chains}, {lanes}), "float32"),
         Y: T.Buffer(({threads}, {chains}, {lanes}), "float32")):
    for t in T.parallel({threads}):
        with T.block("thread"):
            vt = T.axis.spatial({threads}, t)
            sums = T.alloc_buffer(({chains}, {lanes}), "float32", scope="register")
            for c in T.unroll({chains}):
                for lane in T.vectorized({lanes}):
                    sums[c, lane] = T.float32(0)
            for again, k in T.grid({passes}, {vectors}):
                for c in T.unroll({chains}):
                    for lane in T.vectorized({lanes}):
                        sums[c, lane] = sums[c, lane] + X[vt, k, c, lane]
            for c in T.unroll({chains}):
                for lane in T.vectorized({lanes}):
                    Y[vt, c, lane] = sums[c, lane]
)",
                     fmt::arg("threads", threads), fmt::arg("lanes", lanes), fmt::arg("vectors", vectors),
                     fmt::arg("passes", passes), fmt::arg("chains", chains));
}

// A float32 tensor of zeros in memory of its own, in whole cache lines.
struct Zeros {
  std::vector<int64_t> shape;
  std::unique_ptr<float[], void (*)(float*)> data;
  DLTensor tensor{};
  explicit Zeros(std::vector<int64_t> dims)
      : shape(std::move(dims)), data(nullptr, [](float* p) { ::operator delete[](p, std::align_val_t{64}); }) {
    size_t count = 1;
    for (const int64_t d : shape) count *= static_cast<size_t>(d);
    data.reset(static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{64})));
    std::fill_n(data.get(), count, 0.0F);
    tensor.data = data.get();
    tensor.device = {kDLCPU, 0};
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.shape = shape.data();
  }
};

support::Result<BuiltFunctionsRef> built(const std::string& text, const target::Target& target) {
  const script::Dialect* dialects[] = {&tir::script_dialect()};
  CompileOptions options;
  options.target = target;
  return BuiltFunctions::build(TRY(script::parse({"<machine>", text}, dialects)), options);
}

// Seconds of the best of `repeat` runs.
support::Result<double> best(const BuiltFunctions& program, const DLTensor& input, const DLTensor& output, int threads,
                             int repeat) {
  const std::vector<double> times =
      TRY(program.time("main", {&input, &output}, {.number = 1, .repeat = repeat, .threads = threads}));
  return *std::min_element(times.begin(), times.end());
}

support::Result<double> bandwidth(const target::Target& target, int threads, int64_t bytes) {
  const int64_t lanes = target.lanes(32);
  const int64_t row = chains * lanes * 4;
  const int64_t vectors = std::max<int64_t>(1, bytes / threads / row);
  const int64_t passes = std::max<int64_t>(1, (4 << 20) / bytes);
  Zeros input({threads, vectors, chains, lanes}), output({threads, chains, lanes});
  const BuiltFunctionsRef program = TRY(built(read_text(threads, lanes, vectors, passes), target));
  const double seconds = TRY(best(*program, input.tensor, output.tensor, threads, bytes < beyond_caches ? 5 : 2));
  return static_cast<double>(passes * vectors * row * threads) / seconds;
}

}  // namespace

const MemoryLevel& MachineLimits::level_of(double bytes) const {
  for (const MemoryLevel& level : levels)
    if (level.bytes == 0 || bytes <= static_cast<double>(level.bytes)) return level;
  return levels.back();
}

struct PeakProbe::State {
  BuiltFunctionsRef program;
  Zeros input, output;
  int threads;
  double operations;
};

PeakProbe::PeakProbe(std::unique_ptr<State> state) : state_(std::move(state)) {}
PeakProbe::PeakProbe(PeakProbe&&) noexcept = default;
PeakProbe::~PeakProbe() = default;

support::Result<PeakProbe> PeakProbe::create(const target::Target& target, int threads) {
  const int64_t lanes = target.lanes(32), rows = target.vector_registers >= 32 ? 24 : 12;
  return PeakProbe(std::make_unique<State>(State{TRY(built(peak_text(threads, lanes, rows), target)), Zeros({2, lanes}),
                                                 Zeros({threads, rows, lanes}), threads,
                                                 static_cast<double>(2 * threads * steps * rows * lanes)}));
}

support::Result<double> PeakProbe::read() const {
  return state_->operations /
         TRY(best(*state_->program, state_->input.tensor, state_->output.tensor, state_->threads, 5));
}

support::Result<MachineLimits> measure_machine(const target::Target& target, int threads, double peak) {
  MachineLimits limits;
  limits.operations_per_second = peak;
  for (const target::Cache& cache : target.caches) {
    const int64_t bytes = cache.bytes * (cache.shared_by > 1 ? 1 : threads);
    const double speed = TRY(bandwidth(target, threads, std::min<int64_t>(bytes / 2, 64 << 20)));
    limits.levels.push_back({fmt::format("L{}", cache.level), bytes, speed});
  }
  limits.levels.push_back({"memory", 0, TRY(bandwidth(target, threads, beyond_caches))});
  return limits;
}

}  // namespace lathe::driver
