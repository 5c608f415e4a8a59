// Vectors whose elements lie apart in memory, or fill no register, and columns of squares in registers: every element
// arrives, and nothing beside them is touched.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

// Bytes that end where memory ends: one read or written beyond them ends the process.
class AtTheEnd {
 public:
  explicit AtTheEnd(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    whole_ = (bytes + page - 1) / page * page + page;
    start_ = static_cast<char*>(mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(start_ + whole_ - page, page, PROT_NONE);
    data_ = start_ + whole_ - page - bytes;
  }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  ~AtTheEnd() { munmap(start_, whole_); }
  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_, whole_ = 0;
  char *start_ = nullptr, *data_ = nullptr;
};

std::vector<DType> dtypes() {
  return {DType::float_(32), DType::float_(64), DType::int_(8), DType::float_(16), DType::boolean(), DType::int_(64)};
}

Expr ramp(int64_t base, int64_t stride, int64_t lanes) {
  return lanes == 1 ? int64(base) : Expr(make<Ramp>(int64(base), int64(stride), lanes));
}

void fill(char* data, size_t count, DType t) {
  for (size_t i = 0; i < count * static_cast<size_t>(t.element_bytes()); ++i)
    data[i] = static_cast<char>(t.is_bool() ? i % 3 == 0 : i % 111 + 1);
}

TEST(memory, elements_that_lie_apart_come_as_they_are) {
  for (const DType t : dtypes())
    for (const int64_t stride : {1, 2, 3, 4, 5})
      for (const int64_t lanes : {2, 3, 4, 7, 8, 13, 14, 16, 31}) {
        const int64_t span = (lanes - 1) * stride + 1;
        const Buffer a = buffer("A", {int64(span)}, t), b = buffer("B", {int64(lanes)}, t);
        const Stmt body = make<BufferStore>(b, load(a, {ramp(0, stride, lanes)}), std::vector<Expr>{ramp(0, 1, lanes)});
        const auto loaded = test::load({{"apart", prim_func({a, b}, body)}});
        const auto width = static_cast<size_t>(t.element_bytes());
        AtTheEnd from(static_cast<size_t>(span) * width), to(static_cast<size_t>(lanes) * width);
        fill(from.data(), static_cast<size_t>(span), t);
        ASSERT_EQ(test::call(loaded, 0, {from.data(), to.data()}), 0);
        for (size_t lane = 0; lane < static_cast<size_t>(lanes); ++lane)
          ASSERT_EQ(
              std::memcmp(to.data() + lane * width, from.data() + lane * static_cast<size_t>(stride) * width, width), 0)
              << t.str() << ", stride " << stride << ", lane " << lane << " of " << lanes;
      }
}

// B[l] = A[(step * l + shift) // period]: lanes at constant distances, of which some may be equal.
TEST(memory, lanes_at_constant_distances_come_as_they_are) {
  for (const DType t : dtypes())
    for (const auto& [step, shift, period] : std::vector<std::array<int64_t, 3>>{
             {1, 0, 2}, {1, 1, 2}, {1, 2, 3}, {3, 1, 2}, {7, 0, 3}, {1, 0, 40}, {9, 4, 2}})
      for (const int64_t lanes : {2, 3, 8, 13, 16, 31}) {
        const int64_t span = ((lanes - 1) * step + shift) / period + 1;
        const Buffer a = buffer("A", {int64(span)}, t), b = buffer("B", {int64(lanes)}, t);
        const Expr index = floordiv(ramp(shift, step, lanes), make<Broadcast>(int64(period), lanes));
        const Stmt body = make<BufferStore>(b, load(a, {index}), std::vector<Expr>{ramp(0, 1, lanes)});
        const auto loaded = test::load({{"distances", prim_func({a, b}, body)}});
        const auto width = static_cast<size_t>(t.element_bytes());
        AtTheEnd from(static_cast<size_t>(span) * width), to(static_cast<size_t>(lanes) * width);
        fill(from.data(), static_cast<size_t>(span), t);
        ASSERT_EQ(test::call(loaded, 0, {from.data(), to.data()}), 0);
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const auto element = static_cast<size_t>((lane * step + shift) / period);
          ASSERT_EQ(std::memcmp(to.data() + static_cast<size_t>(lane) * width, from.data() + element * width, width), 0)
              << t.str() << ", (" << step << " l + " << shift << ") // " << period << ", lane " << lane << " of "
              << lanes;
        }
      }
}

// B[l] = A[l % rows * apart + l // rows]: rows of a tensor, put into each other.
TEST(memory, rows_are_put_into_each_other) {
  for (const DType t : dtypes())
    for (const int64_t rows : {2, 3, 4, 5})
      for (const int64_t apart : {3, 16, 58, 1000})
        for (const int64_t lanes : {2, 3, 5, 8, 20, 32, 48, 64}) {
          const auto element = [&](int64_t lane) { return lane % rows * apart + lane / rows; };
          int64_t span = 0;
          for (int64_t lane = 0; lane < lanes; ++lane) span = std::max(span, element(lane) + 1);
          const Buffer a = buffer("A", {int64(span)}, t), b = buffer("B", {int64(lanes)}, t);
          const auto all = [&](int64_t value) { return Expr(make<Broadcast>(int64(value), lanes)); };
          const Expr lane_numbers = ramp(0, 1, lanes);
          const Expr index = floormod(lane_numbers, all(rows)) * all(apart) + floordiv(lane_numbers, all(rows));
          const Stmt body = make<BufferStore>(b, load(a, {index}), std::vector<Expr>{lane_numbers});
          const auto loaded = test::load({{"interleaved", prim_func({a, b}, body)}});
          const auto width = static_cast<size_t>(t.element_bytes());
          AtTheEnd from(static_cast<size_t>(span) * width), to(static_cast<size_t>(lanes) * width);
          fill(from.data(), static_cast<size_t>(span), t);
          ASSERT_EQ(test::call(loaded, 0, {from.data(), to.data()}), 0);
          for (int64_t lane = 0; lane < lanes; ++lane)
            ASSERT_EQ(std::memcmp(to.data() + static_cast<size_t>(lane) * width,
                                  from.data() + static_cast<size_t>(element(lane)) * width, width),
                      0)
                << t.str() << ", " << rows << " rows " << apart << " apart, lane " << lane << " of " << lanes;
        }
}

// B[c, r] = A[r, c] by way of registers: rows go in, columns come out.
TEST(memory, columns_of_registers_are_transposed_rows) {
  for (const DType t : dtypes())
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {2, 2}, {4, 4}, {8, 8}, {16, 16}, {32, 32}, {3, 4}, {4, 3}, {16, 8}, {8, 16}, {5, 1}}) {
      const Buffer a = buffer("A", {int64(rows * columns)}, t), b = buffer("B", {int64(rows * columns)}, t);
      const Buffer square = buffer("S", {int64(rows * columns)}, t, "register");
      std::vector<Stmt> steps;
      for (int64_t r = 0; r < rows; ++r)
        steps.push_back(make<BufferStore>(square, load(a, {ramp(r * columns, 1, columns)}),
                                          std::vector<Expr>{ramp(r * columns, 1, columns)}));
      for (int64_t c = 0; c < columns; ++c)
        steps.push_back(
            make<BufferStore>(b, load(square, {ramp(c, columns, rows)}), std::vector<Expr>{ramp(c * rows, 1, rows)}));
      const Stmt body = make<Allocate>(square->data, t, std::vector<Expr>{int64(rows * columns)},
                                       std::string("register"), seq(std::move(steps)));
      const auto loaded = test::load({{"columns", prim_func({a, b}, body)}});
      const auto width = static_cast<size_t>(t.element_bytes());
      const auto count = static_cast<size_t>(rows * columns);
      AtTheEnd from(count * width), to(count * width);
      fill(from.data(), count, t);
      ASSERT_EQ(test::call(loaded, 0, {from.data(), to.data()}), 0);
      for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
        for (size_t c = 0; c < static_cast<size_t>(columns); ++c)
          ASSERT_EQ(std::memcmp(to.data() + (c * static_cast<size_t>(rows) + r) * width,
                                from.data() + (r * static_cast<size_t>(columns) + c) * width, width),
                    0)
              << t.str() << ", row " << r << ", column " << c << " of " << rows << "x" << columns;
    }
}

}  // namespace
}  // namespace lathe::codegen
