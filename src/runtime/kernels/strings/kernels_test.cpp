// The kernels on strings as a program calls them: strings in, strings or tensors out.
#include "runtime/kernels/strings/kernels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "abi/kernel_attributes_writer.h"
#include "runtime/core/program_fixture.h"

extern "C" const LatheRuntimeKernelTable lathe_runtime_kernels_strings;

namespace lathe::strings {
namespace {

using namespace runtime::testing;  // NOLINT: its fixtures are what these tests are made of
using abi::AttributeWriter;
using abi::Opcode;
using abi::ValueKind;
using Texts = std::vector<std::string>;

constexpr DLDataType f64 = {kDLFloat, 64, 1};

Value strings_value(const std::vector<int64_t>& shape, const Texts& texts) {
  Value made(lathe_value_make_strings(static_cast<int32_t>(shape.size()), shape.data()));
  for (size_t i = 0; i < texts.size(); ++i)
    lathe_value_set_string(made.get(), static_cast<int64_t>(i), texts[i].data(), texts[i].size());
  return made;
}
Texts texts_of(const Value& value) {
  Texts texts;
  for (int64_t i = 0; i < lathe_value_count(value.get()); ++i) {
    uint64_t bytes = 0;
    const char* text = lathe_value_get_string(value.get(), i, &bytes);
    texts.emplace_back(text, bytes);
  }
  return texts;
}
std::vector<int64_t> shape_of_strings(const Value& value) {
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  lathe_value_strings_shape(value.get(), &rank, &shape);
  return {shape, shape + rank};
}

// Calls a kernel; results are strings where `dtypes` says their numbers. Empty when the run failed.
std::vector<Value> call(const std::string& name, const std::vector<LatheValue*>& inputs, std::string attributes,
                        const std::vector<DLDataType>& dtypes, LatheContextOptions limits = {}) {
  abi::ProgramWriter program;
  abi::FunctionWriter main = program.function("main");
  std::vector<uint32_t> operands, given;
  for (const LatheValue* input : inputs) {
    const auto kind = static_cast<ValueKind>(lathe_value_kind(input));
    const DLTensor* tensor = lathe_value_tensor(input);
    program.input({.name = "in", .kind = kind, .dtype = tensor ? tensor->dtype : DLDataType{}, .unknown_rank = true});
    given.push_back(main.parameter(kind, tensor ? tensor->dtype : DLDataType{}));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back(given[i]);
    if (lathe_value_kind(inputs[i]) != LATHE_STRINGS) continue;
    operands.back() = main.reg(ValueKind::tensor, string_number);
    main.emit(Opcode::take_strings, {operands.back(), given[i]});
  }
  attributes.resize((attributes.size() + 7) / 8 * 8);
  std::vector<uint32_t> words{program.runtime_kernel(name), program.slice(attributes.data(), attributes.size()),
                              static_cast<uint32_t>(operands.size())};
  words.insert(words.end(), operands.begin(), operands.end());
  words.push_back(static_cast<uint32_t>(dtypes.size()));
  std::vector<uint32_t> made, returned{static_cast<uint32_t>(dtypes.size())};
  for (const DLDataType dtype : dtypes) made.push_back(main.reg(ValueKind::tensor, dtype));
  words.insert(words.end(), made.begin(), made.end());
  main.emit(Opcode::call_runtime_kernel, words, "Node_1");
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const bool is_text = dtypes[i].code == kDLOpaqueHandle;
    program.output({.name = "out",
                    .kind = is_text ? ValueKind::strings : ValueKind::tensor,
                    .dtype = is_text ? DLDataType{} : dtypes[i],
                    .unknown_rank = true});
    returned.push_back(is_text ? main.reg(ValueKind::strings) : made[i]);
    if (is_text) main.emit(Opcode::give_strings, {returned.back(), made[i]});
  }
  main.emit(Opcode::return_values, returned);
  program.finish_function(std::move(main));
  TestArtifact artifact;
  artifact.program = program.finish();
  const LatheRuntimeKernelTable* tables[] = {&lathe_runtime_kernels_strings};
  LatheOpenOptions options = {};
  options.size = sizeof(options);
  options.runtime_kernels = tables;
  options.runtime_kernel_tables = 1;
  const Model model = open(artifact, &options);
  EXPECT_NE(model, nullptr) << last_message();
  return run_values(context_of(model, limits), inputs, static_cast<int>(dtypes.size()));
}

TEST(string_kernels, concat_joins_element_by_element) {
  const Value a = strings_value({2, 2}, {"a", "", "ü", std::string("x\0y", 3)}),
              b = strings_value({2, 2}, {"1", "2", "", "z"});
  const std::vector<Value> out = call("strings.concat", {a.get(), b.get()}, "", {string_number});
  ASSERT_EQ(out.size(), 1u) << last_message();
  EXPECT_EQ(texts_of(out[0]), (Texts{"a1", "2", "ü", std::string("x\0yz", 4)}));
  EXPECT_EQ(shape_of_strings(out[0]), (std::vector<int64_t>{2, 2}));
  const Value other = strings_value({3}, {});
  EXPECT_TRUE(call("strings.concat", {a.get(), other.get()}, "", {string_number}).empty());
  EXPECT_EQ(lathe_last_error()->code, LATHE_CHECK_FAILED) << last_message();
}

TEST(string_kernels, a_string_longer_than_the_limit_ends_the_run_with_its_node) {
  const Value a = strings_value({1}, {std::string(600000, 'a')});
  EXPECT_TRUE(call("strings.concat", {a.get(), a.get()}, "", {string_number}, {.max_memory = 1 << 20}).empty());
  EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED) << last_message();
  EXPECT_STREQ(lathe_last_error()->node, "Node_1");
}

struct Split {
  std::string delimiter;
  int64_t most;
  Texts given, parts;
  std::vector<int64_t> counts;
};

TEST(string_kernels, split_is_as_pythons) {
  for (const Split& each :
       {Split{",",
              -1,
              {"a,b", "", "c", ",x,,"},
              {"a", "b", "", "", "", "", "", "", "c", "", "", "", "", "x", "", ""},
              {2, 1, 1, 4}},
        Split{",", 1, {"a,b,c", "d"}, {"a", "b,c", "d", ""}, {2, 1}}, Split{"--", 0, {"a--b"}, {"a--b"}, {1}},
        Split{"aa", -1, {"aaaab"}, {"", "", "b"}, {3}}, Split{"", -1, {"  a \t b ", "   "}, {"a", "b", "", ""}, {2, 0}},
        Split{"", 1, {" a  b c  "}, {"a", "b c"}, {2}}}) {
    const Value x = strings_value({static_cast<int64_t>(each.given.size())}, each.given);
    const std::vector<Value> out =
        call("strings.split", {x.get()}, AttributeWriter().text(each.delimiter).word(each.most).take(),
             {string_number, int64_type});
    ASSERT_EQ(out.size(), 2u) << last_message();
    EXPECT_EQ(texts_of(out[0]), each.parts) << each.delimiter;
    EXPECT_EQ(elements_of<int64_t>(*lathe_value_tensor(out[1].get())), each.counts);
  }
}

TEST(string_kernels, normalize_changes_case_and_leaves_stop_words_out) {
  const auto normalized = [](int64_t letter_case, int64_t is_sensitive, const Texts& stop_words, const Texts& given) {
    AttributeWriter attributes;
    attributes.word(letter_case).word(is_sensitive).word(static_cast<int64_t>(stop_words.size()));
    for (const std::string& word : stop_words) attributes.text(word);
    const Value x = strings_value({1, static_cast<int64_t>(given.size())}, given);
    const std::vector<Value> out = call("strings.normalize", {x.get()}, attributes.take(), {string_number});
    return out.empty() ? Texts{"failed: " + last_message()} : texts_of(out[0]);
  };
  const Texts days{"Monday", "ÄRGER", "ﬁ", "monday", "", "\xFFX"};
  EXPECT_EQ(normalized(0, 1, {}, days), days);
  EXPECT_EQ(normalized(1, 1, {}, days), (Texts{"monday", "ärger", "ﬁ", "monday", "", "\xFFx"}));
  EXPECT_EQ(normalized(2, 1, {"monday"}, days), (Texts{"MONDAY", "ÄRGER", "ﬁ", "", "\xFFX"}));
  EXPECT_EQ(normalized(0, 0, {"MONDAY", "ärger"}, days), (Texts{"ﬁ", "", "\xFFX"}));
  EXPECT_EQ(normalized(0, 1, {"a"}, {"a", "a"}), Texts{""}) << "of nothing one empty string";
  EXPECT_NE(normalized(3, 1, {}, days)[0].find("damaged"), std::string::npos);
}

TEST(string_kernels, order_is_that_of_bytes) {
  const Value x = strings_value({6}, {"b", "a", "", "ab", "b", "ä"});
  const std::vector<Value> out = call("strings.order", {x.get()}, "", {int64_type});
  ASSERT_EQ(out.size(), 1u) << last_message();
  EXPECT_EQ(elements_of<int64_t>(*lathe_value_tensor(out[0].get())), (std::vector<int64_t>{3, 1, 0, 2, 3, 4}));
}

template <typename Element>
Texts written(DLDataType dtype, std::vector<Element> numbers) {
  HostTensor<Element> host(dtype, {static_cast<int64_t>(numbers.size())}, numbers);
  const Value x(lathe_value_from_tensor(&host.view));
  const std::vector<Value> out = call("strings.from_numbers", {x.get()}, "", {string_number});
  return out.empty() ? Texts{"failed: " + last_message()} : texts_of(out[0]);
}

TEST(string_kernels, numbers_are_written_as_short_as_they_read_back) {
  EXPECT_EQ(written<float>(f32, {0.1f, 3, -100000, 1e10f, 1e-5f, 3e38f, INFINITY, -INFINITY, NAN, -0.0f}),
            (Texts{"0.1", "3.0", "-100000.0", "10000000000.0", "1e-05", "3e+38", "INF", "-INF", "NaN", "-0.0"}));
  EXPECT_EQ(written<double>(f64, {0.1, 1.0 / 3, 314.15926, 1e16}),
            (Texts{"0.1", "0.3333333333333333", "314.15926", "1e+16"}));
  EXPECT_EQ(written<int64_t>(i64, {INT64_MIN, 7}), (Texts{"-9223372036854775808", "7"}));
  EXPECT_EQ(written<uint64_t>({kDLUInt, 64, 1}, {UINT64_MAX}), (Texts{"18446744073709551615"}));
  EXPECT_EQ(written<uint8_t>(boolean, {0, 1}), (Texts{"False", "True"}));
  EXPECT_NE(written<int32_t>(i32, {1})[0].find("another type"), std::string::npos);
}

TEST(string_kernels, what_is_no_number_is_refused_with_its_text) {
  const auto reals = [](const Texts& given) {
    const Value x = strings_value({static_cast<int64_t>(given.size())}, given);
    const std::vector<Value> out =
        call("strings.to_numbers", {x.get()}, AttributeWriter().word(1).word(0).word(0).take(), {f64});
    return out.empty() ? std::vector<double>{} : elements_of<double>(*lathe_value_tensor(out[0].get()));
  };
  EXPECT_EQ(reals({"1.5", " -2e3\n", "+INF", "-inf", "3"}), (std::vector<double>{1.5, -2000, INFINITY, -INFINITY, 3}));
  EXPECT_TRUE(std::isnan(reals({"NaN"}).at(0)));
  for (const char* wrong : {"", "a", "1,5", "0x10", "1.5.", "1 2", "--1", "nan(7)"}) {
    EXPECT_TRUE(reals({wrong}).empty()) << wrong;
    EXPECT_NE(last_message().find("not a number that fits"), std::string::npos) << last_message();
  }
  const auto integers = [](const Texts& given, int64_t least, int64_t greatest) {
    const Value x = strings_value({static_cast<int64_t>(given.size())}, given);
    const std::vector<Value> out =
        call("strings.to_numbers", {x.get()}, AttributeWriter().word(0).word(least).word(greatest).take(), {i64});
    return out.empty() ? std::vector<int64_t>{} : elements_of<int64_t>(*lathe_value_tensor(out[0].get()));
  };
  EXPECT_EQ(integers({"-5", "+7", "2.0", "1e2"}, INT64_MIN, INT64_MAX), (std::vector<int64_t>{-5, 7, 2, 100}));
  EXPECT_EQ(integers({"-9223372036854775808"}, INT64_MIN, INT64_MAX), (std::vector<int64_t>{INT64_MIN}));
  EXPECT_EQ(integers({"18446744073709551615"}, 0, -1), (std::vector<int64_t>{-1}));
  for (const char* wrong : {"128", "-129", "1e30", "9999999999999999999999", "x"})
    EXPECT_TRUE(integers({wrong}, -128, 127).empty()) << wrong;
}

// (ab|c)* with the end of the text: by hand, as the compiler writes it.
TEST(string_kernels, match_follows_all_ways_and_refuses_damaged_expressions) {
  const std::vector<int64_t> steps = {7,          // instructions
                                      2, 1,   6,  // 0 either 1 or 6
                                      2, 2,   4,  // 1 either 2 or 4
                                      1, 0,   1,  // 2 'a'
                                      1, 1,   1,  // 3 'b' (falls to 4: see below)
                                      1, 2,   1,  // 4 'c'
                                      3, 0,   0,  // 5 jump 0
                                      0, 0,   0,  // 6 accept
                                      3, 'a', 'a', 'b', 'b', 'c', 'c'};
  const auto matched = [](const std::vector<int64_t>& words, const Texts& given) {
    AttributeWriter attributes;
    for (const int64_t word : words) attributes.word(word);
    const Value x = strings_value({static_cast<int64_t>(given.size())}, given);
    const std::vector<Value> out = call("strings.match", {x.get()}, attributes.take(), {bool_type});
    return out.empty() ? std::vector<uint8_t>{9} : elements_of<uint8_t>(*lathe_value_tensor(out[0].get()));
  };
  // a b c in a row, or c: any number of times.
  EXPECT_EQ(matched(steps, {"", "abc", "c", "ccabcc", "ab", "abcab", "d"}),
            (std::vector<uint8_t>{1, 1, 1, 1, 0, 0, 0}));
  for (size_t i = 0; i < steps.size(); ++i)
    for (const int64_t wrong : {int64_t{-1}, int64_t{100}, INT64_MIN, INT64_MAX}) {
      std::vector<int64_t> damaged = steps;
      damaged[i] = wrong;
      const std::vector<uint8_t> result = matched(damaged, {"abc"});  // refused, or another answer: no more
      EXPECT_EQ(result.size(), 1u);
    }
  for (size_t left = 0; left < steps.size(); ++left)
    EXPECT_EQ(matched({steps.begin(), steps.begin() + static_cast<ptrdiff_t>(left)}, {"abc"}), std::vector<uint8_t>{9})
        << left;
}

}  // namespace
}  // namespace lathe::strings
