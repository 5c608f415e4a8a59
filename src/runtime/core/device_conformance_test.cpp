// What every device must do, run on each row of abi/backends.def.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "abi/lathe.h"
#include "runtime/core/device.h"
#include "runtime/null/null_device.h"

namespace lathe::runtime {
namespace {

class device_conformance : public ::testing::TestWithParam<abi::Backend> {
 protected:
  const Device& device = device_of(GetParam());
  Queue* queue = device.create_queue(0);
  void TearDown() override {
    if (queue != nullptr) device.destroy_queue(queue);
  }
  Launch launch_of(LatheKernel kernel, void* const* buffers, uint32_t count) const {
    return {kernel, nullptr, nullptr, buffers, count, nullptr, 0, "kernel"};
  }
};

TEST_P(device_conformance, is_what_its_row_says) {
  EXPECT_EQ(device.backend, GetParam());
  EXPECT_STREQ(device.name, abi::backend_names[static_cast<int>(GetParam())]);
  ASSERT_NE(queue, nullptr);
  EXPECT_EQ(queue->device, &device);
}

TEST_P(device_conformance, refuses_a_device_that_is_not_there) { EXPECT_EQ(device.create_queue(1000), nullptr); }

TEST_P(device_conformance, allocates_aligned_memory_even_of_no_bytes) {
  for (const uint64_t bytes : {0, 1, 63, 4097, 9 << 20})
    for (const uint64_t alignment : {1, 64, 4096}) {
      void* memory = device.allocate(queue, abi::Scope::global, bytes, alignment);
      ASSERT_NE(memory, nullptr) << bytes;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
      device.release(queue, abi::Scope::global, memory);
    }
  EXPECT_EQ(device.wait(queue), 0);
}

TEST_P(device_conformance, gives_no_memory_rather_than_dying) {
  EXPECT_EQ(device.allocate(queue, abi::Scope::global, uint64_t{1} << 60, 64), nullptr);
}

TEST_P(device_conformance, copies_in_the_order_of_the_queue) {
  const int32_t first[] = {1, 2, 3, 4}, second[] = {5, 6};
  int32_t back[4] = {};
  void* memory = device.allocate(queue, abi::Scope::global, sizeof(first), 64);
  void* other = device.allocate(queue, abi::Scope::global, sizeof(first), 64);
  EXPECT_EQ(device.copy(queue, memory, first, sizeof(first)), 0);
  EXPECT_EQ(device.copy(queue, static_cast<int32_t*>(memory) + 1, second, sizeof(second)), 0);
  EXPECT_EQ(device.copy(queue, other, memory, sizeof(first)), 0);
  EXPECT_EQ(device.copy(queue, back, other, sizeof(back)), 0);
  EXPECT_EQ(device.copy(queue, nullptr, nullptr, 0), 0);
  device.release(queue, abi::Scope::global, other);  // after the copy out of it
  device.release(queue, abi::Scope::global, memory);
  EXPECT_EQ(device.wait(queue), 0);
  EXPECT_EQ(std::vector<int32_t>(back, back + 4), (std::vector<int32_t>{1, 5, 6, 4}));
}

TEST_P(device_conformance, launches_with_the_buffers_of_the_moment) {
  const LatheKernel increment = [](const LatheServices*, void*, void* const* at, const int64_t*) {
    ++*static_cast<int32_t*>(at[0]);
    return int32_t{0};
  };
  int32_t value = 10, other = 20, back = 0;
  void* memory = device.allocate(queue, abi::Scope::global, sizeof(value), 64);
  device.copy(queue, memory, &value, sizeof(value));
  void* buffers[] = {memory};
  EXPECT_EQ(device.launch(queue, launch_of(increment, buffers, 1)), 0);
  buffers[0] = &other;  // read before launch returned
  device.copy(queue, &back, memory, sizeof(back));
  device.release(queue, abi::Scope::global, memory);
  EXPECT_EQ(device.wait(queue), 0);
  EXPECT_EQ(back, device.executes ? 11 : 10);
  EXPECT_EQ(other, 20);
}

TEST_P(device_conformance, says_the_first_failure_once) {
  if (!device.executes) GTEST_SKIP() << "kernels of '" << device.name << "' do not run, so none fails";
  const LatheKernel fails = [](const LatheServices*, void*, void* const* at, const int64_t*) {
    return *static_cast<int32_t*>(at[0]);
  };
  int32_t first = 7, second = 8;
  void* one[] = {&first};
  void* two[] = {&second};
  device.launch(queue, launch_of(fails, one, 1));
  device.launch(queue, launch_of(fails, two, 1));
  EXPECT_EQ(device.wait(queue), 7);
  EXPECT_EQ(device.wait(queue), 0);
}

std::vector<abi::Backend> all_backends() {
  std::vector<abi::Backend> all;
  for (uint32_t i = 0; i < abi::backend_count; ++i) all.push_back(static_cast<abi::Backend>(i));
  return all;
}
INSTANTIATE_TEST_SUITE_P(backends, device_conformance, ::testing::ValuesIn(all_backends()),
                         [](const auto& row) { return std::string(abi::backend_names[static_cast<int>(row.param)]); });

TEST(null_device, records_what_it_was_asked_for_and_is_lazy) {
  const Device& device = null_device();
  Queue* queue = device.create_queue(0);
  int32_t from = 3, to = 0;
  device.copy(queue, &to, &from, sizeof(to));
  device.launch(queue, {nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0, "matmul"});
  EXPECT_EQ(to, 0);
  EXPECT_EQ(null_record(queue).pending, 1u);
  EXPECT_STREQ(null_record(queue).last_launch, "matmul");
  device.wait(queue);
  EXPECT_EQ(to, 3);
  const NullRecord record = null_record(queue);
  EXPECT_EQ(record.copies, 1u);
  EXPECT_EQ(record.launches, 1u);
  EXPECT_EQ(record.waits, 1u);
  EXPECT_EQ(record.pending, 0u);
  device.destroy_queue(queue);
}

}  // namespace
}  // namespace lathe::runtime
