// What a context keeps from one run to the next, through the C interface.
#include <gtest/gtest.h>

#include "abi/program_printer.h"
#include "runtime/core/allocation_sweep.h"
#include "runtime/core/program/verify_program.h"
#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {
namespace {

using Floats = std::vector<float>;

int32_t add(const Context& context, const Floats& x, Floats& y) {
  HostTensor<float> given(f32, {static_cast<int64_t>(x.size()) / 2, 2}, x), result(f32, {2});
  const DLTensor *inputs[] = {&given.view}, *outputs[] = {&result.view};
  const int32_t status = lathe_run_into(context.get(), inputs, 1, outputs, 1);
  y = result.data;
  return status;
}

struct Kept {
  Floats sum, rows;
  std::vector<int64_t> shape;  // of the rows
  bool operator==(const Kept&) const = default;
};

int32_t get(const Context& context, Kept& kept) {
  DLManagedTensor* states[2];
  const int32_t status = lathe_get_states(context.get(), states, 2);
  if (status != LATHE_OK) return status;
  const Managed sum(states[0]), rows(states[1]);
  kept = {elements_of<float>(sum->dl_tensor), elements_of<float>(rows->dl_tensor), shape_of(rows->dl_tensor)};
  return status;
}

int32_t set(const Context& context, const DLTensor& sum, const DLTensor& rows) {
  const DLTensor* states[] = {&sum, &rows};
  return lathe_set_states(context.get(), states, 2);
}

struct states : ::testing::Test {
  TestArtifact artifact;
  Model model;
  Context context;
  Floats y;
  void SetUp() override {
    write_journal(artifact);
    model = open(artifact);
    ASSERT_NE(model, nullptr) << last_message();
    context = context_of(model);
  }
  Kept kept() {
    Kept all;
    EXPECT_EQ(get(context, all), LATHE_OK) << last_message();
    return all;
  }
};

TEST_F(states, are_described_and_no_ports_of_a_call) {
  EXPECT_EQ(lathe_input_count(model.get()), 1);
  EXPECT_EQ(lathe_output_count(model.get()), 1);
  EXPECT_EQ(lathe_input(model.get(), 1), nullptr);
  EXPECT_EQ(lathe_output(model.get(), 1), nullptr);
  ASSERT_EQ(lathe_state_count(model.get()), 2);
  EXPECT_STREQ(lathe_state(model.get(), 0)->name, "sum");
  const LatheValueInfo& rows = *lathe_state(model.get(), 1);
  EXPECT_STREQ(rows.name, "rows");
  ASSERT_EQ(rows.rank, 2);
  EXPECT_EQ(rows.dims[0], -1);
  EXPECT_STREQ(rows.symbols[0], "count");
  EXPECT_EQ(rows.dims[1], 2);
  EXPECT_EQ(lathe_state(model.get(), 2), nullptr);
  EXPECT_EQ(lathe_state(model.get(), -1), nullptr);
  abi::ProgramView view;
  view.parse(artifact.program.data(), artifact.program.size());
  const std::string text = abi::print_program(view);
  for (const char* line :
       {"state sum becomes next_sum\n", "state rows is written in place: count elements along axis 0\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
}

TEST_F(states, go_on_from_run_to_run) {
  EXPECT_EQ(kept(), (Kept{{0, 0}, {}, {0, 2}}));
  ASSERT_EQ(add(context, {1, 2}, y), LATHE_OK) << last_message();
  EXPECT_EQ(y, (Floats{1, 2}));
  ASSERT_EQ(add(context, {3, 4, 5, 6}, y), LATHE_OK) << last_message();
  EXPECT_EQ(y, (Floats{9, 12}));
  ASSERT_EQ(add(context, {}, y), LATHE_OK) << last_message();
  EXPECT_EQ(kept(), (Kept{{9, 12}, {1, 2, 3, 4, 5, 6}, {3, 2}}));
  ASSERT_EQ(lathe_reset_states(context.get()), LATHE_OK);
  EXPECT_EQ(kept(), (Kept{{0, 0}, {}, {0, 2}}));
  ASSERT_EQ(add(context, {7, 8}, y), LATHE_OK) << last_message();
  EXPECT_EQ(kept(), (Kept{{7, 8}, {7, 8}, {1, 2}}));
}

TEST_F(states, of_contexts_are_apart) {
  const Context other = context_of(model);
  ASSERT_EQ(add(context, {1, 2}, y), LATHE_OK);
  ASSERT_EQ(add(other, {10, 20}, y), LATHE_OK);
  ASSERT_EQ(add(context, {3, 4}, y), LATHE_OK);
  EXPECT_EQ(kept(), (Kept{{4, 6}, {1, 2, 3, 4}, {2, 2}}));
}

TEST_F(states, stay_where_a_run_fails) {
  ASSERT_EQ(add(context, {1, 2}, y), LATHE_OK);
  const Kept before = kept();
  EXPECT_EQ(add(context, {-1, 2}, y), LATHE_KERNEL_FAILED);
  EXPECT_EQ(kept(), before);
  EXPECT_EQ(add(context, {1, 2, 3, 4, 5, 6, 7, 8}, y), LATHE_CHECK_FAILED);
  EXPECT_EQ(last_message(), "5 rows do not fit");
  EXPECT_EQ(kept(), before);
  ASSERT_EQ(add(context, {3, 4}, y), LATHE_OK);
  EXPECT_EQ(kept(), (Kept{{4, 6}, {1, 2, 3, 4}, {2, 2}}));
}

TEST_F(states, are_set_all_at_once) {
  HostTensor<float> sum(f32, {2}, {5, 6}), columns(f32, {2, 3}, {1, 3, 5, 2, 4, 6});
  int64_t shape[] = {3, 2}, strides[] = {1, 3};
  DLTensor rows = columns.view;
  rows.shape = shape;
  rows.strides = strides;
  ASSERT_EQ(set(context, sum.view, rows), LATHE_OK) << last_message();
  const Kept wanted{{5, 6}, {1, 2, 3, 4, 5, 6}, {3, 2}};
  EXPECT_EQ(kept(), wanted);
  HostTensor<float> many(f32, {5, 2}), narrow(f32, {2, 3}), flat(f32, {4});
  HostTensor<int64_t> whole(i64, {1, 2});
  for (const auto& [wrong, message] : std::vector<std::pair<const DLTensor*, std::string>>{
           {&many.view, "the state 'rows' has room for 4 elements along axis 0, 5 are given"},
           {&narrow.view, "input 'rows' must have the shape [count, 2], it has [2, 3]"},
           {&flat.view, "input 'rows' must have the shape [count, 2], it has rank 1"},
           {&whole.view, "input 'rows' must be float32, it is int64"}}) {
    HostTensor<float> other(f32, {2}, {8, 9});
    EXPECT_EQ(set(context, other.view, *wrong), LATHE_INVALID_ARGUMENT);
    EXPECT_EQ(last_message(), message);
    EXPECT_EQ(kept(), wanted);
  }
  const DLTensor* missing[] = {&sum.view, nullptr};
  EXPECT_EQ(lathe_set_states(context.get(), missing, 2), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(lathe_set_states(context.get(), missing, 1), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "the model has 2 states, 1 are given or asked for");
  DLManagedTensor* one = nullptr;
  EXPECT_EQ(lathe_get_states(context.get(), &one, 1), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(lathe_get_states(nullptr, &one, 1), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(lathe_set_states(context.get(), nullptr, 2), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(lathe_reset_states(nullptr), LATHE_INVALID_ARGUMENT);
  EXPECT_EQ(kept(), wanted);
}

TEST_F(states, count_against_the_limit_of_memory) {
  const Context small = context_of(model, {.max_memory = 100});
  EXPECT_EQ(add(small, {1, 2}, y), LATHE_LIMIT_REACHED);
}

TEST_F(states, survive_allocations_that_fail) {
  HostTensor<float> sum(f32, {2}, {5, 6}), rows(f32, {1, 2}, {1, 2});
  const Swept swept = sweep([&]() -> int32_t {
    const Context own = context_of(model, {.threads = 1});
    if (own == nullptr) return lathe_last_error()->code;
    if (const int32_t status = set(own, sum.view, rows.view)) return status;
    if (const int32_t status = add(own, {3, 4}, y)) return status;
    Kept all;
    if (const int32_t status = get(own, all)) return status;
    EXPECT_EQ(all, (Kept{{8, 10}, {1, 2, 3, 4}, {2, 2}}));
    return lathe_reset_states(own.get());
  });
  EXPECT_EQ(swept.refused, swept.places);
  EXPECT_GE(swept.refused, 20);
}

TEST_F(states, of_a_damaged_program_are_refused) {
  const std::vector<char> good = artifact.program;
  const auto refused = [&](size_t state, uint32_t abi::StateRecord::* field, uint32_t value) {
    artifact.program = good;
    auto* header = reinterpret_cast<abi::ProgramHeader*>(artifact.program.data());
    const uint64_t at = header->sections[static_cast<size_t>(abi::Section::states)].offset;
    reinterpret_cast<abi::StateRecord*>(artifact.program.data() + at)[state].*field = value;
    return open(artifact) == nullptr && last_message().find("state") != std::string::npos;
  };
  EXPECT_TRUE(refused(0, &abi::StateRecord::output, 0));
  EXPECT_TRUE(refused(0, &abi::StateRecord::output, 2));
  EXPECT_TRUE(refused(0, &abi::StateRecord::output, abi::absent));
  EXPECT_TRUE(refused(1, &abi::StateRecord::output, 2));
  EXPECT_TRUE(refused(1, &abi::StateRecord::length, 0));
  EXPECT_TRUE(refused(1, &abi::StateRecord::length, 3));
  EXPECT_TRUE(refused(1, &abi::StateRecord::axis, 2));
  EXPECT_TRUE(refused(2, &abi::StateRecord::output, abi::absent));
  auto* header = reinterpret_cast<abi::ProgramHeader*>(artifact.program.data());
  artifact.program = good;
  header = reinterpret_cast<abi::ProgramHeader*>(artifact.program.data());
  header->sections[static_cast<size_t>(abi::Section::states)].count = 0;
  ASSERT_NE(open(artifact), nullptr) << "without states it is a program of more inputs";
}

}  // namespace
}  // namespace lathe::runtime::testing
