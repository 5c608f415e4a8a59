#include "target/target.h"

#include <gtest/gtest.h>

#include "runtime/cpu/host.h"
#include "runtime/cpu/thread_count.h"

namespace lathe::target {
namespace {

std::string code_of(const support::Result<Target>& result) {
  return result.ok() ? "" : std::string(result.diagnostics().at(0).code.name);
}

TEST(target, names_give_their_levels) {
  const Target v2 = parse_target("x86-64-v2").value_or_throw(), v3 = parse_target("x86-64-v3").value_or_throw(),
               v4 = parse_target("x86-64-v4").value_or_throw();
  EXPECT_TRUE(v2.has("sse4.2") && !v2.has("avx"));
  EXPECT_TRUE(v3.has("fma") && v3.has("f16c") && !v3.has("avx512f"));
  EXPECT_TRUE(v4.has("avx512vl"));
  EXPECT_EQ(v2.vector_bits, 128);
  EXPECT_EQ(v3.vector_bits, 256);
  EXPECT_EQ(v4.vector_bits, 512);
  EXPECT_EQ(v4.vector_registers, 32);
  EXPECT_EQ(v4.lanes(32), 16);
  EXPECT_TRUE(std::includes(v4.features.begin(), v4.features.end(), v3.features.begin(), v3.features.end()));
}

TEST(target, every_feature_of_a_level_is_one_the_runtime_can_check) {
  for (const char* name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    for (const std::string& feature : parse_target(name).value_or_throw().features)
      EXPECT_TRUE(runtime::is_known_feature(feature.c_str())) << feature;
}

TEST(target, native_is_this_machine) {
  const Target native = parse_target("native").value_or_throw();
  EXPECT_EQ(native.kind, "llvm");
  EXPECT_EQ(native.triple.substr(0, native.triple.find('-')), runtime::host().architecture);
  EXPECT_FALSE(native.features.empty());
  EXPECT_EQ(native.cores, std::min(runtime::host().logical_cores, runtime::usable_cores())) << "as many as may be used";
  EXPECT_TRUE(native.cpu.empty()) << "a CPU's name decides nothing";
}

TEST(target, null_and_interp_are_kinds) {
  EXPECT_EQ(parse_target("null").value_or_throw().kind, "null");
  EXPECT_EQ(parse_target("interp").value_or_throw().kind, "interp");
}

TEST(target, a_triple_takes_cpu_and_features) {
  const Target t = parse_target("x86_64-pc-linux-gnu -mcpu=x86-64-v3 -mattr=+avx512f,+avx512vl,-bmi").value_or_throw();
  EXPECT_EQ(t.triple, "x86_64-pc-linux-gnu");
  EXPECT_TRUE(t.has("fma") && t.has("avx512f") && !t.has("bmi"));
  EXPECT_EQ(t.vector_bits, 512);
  const Target arm = parse_target("aarch64-linux-gnu -mattr=+dotprod").value_or_throw();
  EXPECT_TRUE(arm.has("dotprod") && arm.has("neon"));
  EXPECT_EQ(arm.vector_registers, 32);
}

TEST(target, refuses_unknown_names_and_suggests_one) {
  const auto typo = parse_target("x86-64-v5");
  EXPECT_EQ(code_of(typo), "target-unknown");
  EXPECT_NE(typo.diagnostics()[0].help.find("x86-64-v"), std::string::npos);
  const auto strange = parse_target("quantum");
  EXPECT_EQ(code_of(strange), "target-unknown");
  EXPECT_NE(strange.diagnostics()[0].help.find("native"), std::string::npos);
  EXPECT_EQ(code_of(parse_target("riscv64-unknown-linux-gnu")), "target-unknown");
  EXPECT_EQ(code_of(parse_target("")), "target-unknown");
  EXPECT_EQ(code_of(parse_target("native -march=x")), "target-bad-option");
  EXPECT_EQ(code_of(parse_target("native -mattr=+avx,,+fma")), "target-bad-option");
  EXPECT_EQ(code_of(parse_target("missing-file.json")), "target-bad-file");
  EXPECT_EQ(code_of(target_from_json(R"({"triple": "x86_64-linux-gnu", "colour": 1})")), "target-unknown-key");
  EXPECT_EQ(code_of(target_from_json(R"({"triple": "x86_64-linux-gnu", "caches": [{"size": 1}]})")),
            "target-unknown-key");
}

TEST(target, refuses_names_that_are_no_text_or_hold_more_than_one) {
  EXPECT_EQ(code_of(parse_target("x86_64-kn\xef")), "target-bad-option");
  EXPECT_EQ(code_of(parse_target("native -mcpu=a\xff")), "target-bad-option");
  EXPECT_EQ(code_of(parse_target("native -mattr=+avx\"2")), "target-bad-option");
  EXPECT_EQ(code_of(target_from_json(R"({"triple": "x86_64-linux", "features": ["avx,+fma"]})")), "target-bad-file");
  EXPECT_EQ(code_of(target_from_json(R"({"triple": "x86_64-linux", "features": ["+fma"]})")), "target-bad-file");
  EXPECT_EQ(code_of(parse_target("x86_64-linux -mattr=++fma")), "target-bad-option");
  EXPECT_EQ(code_of(target_from_json(R"({"triple": "x86_64-linux", "cpu": "a -cores=2"})")), "target-bad-file");
}

TEST(target, goes_through_json_and_back) {
  for (const char* name : {"native", "x86-64-v3", "aarch64-linux-gnu", "null"}) {
    const Target t = parse_target(name).value_or_throw();
    const Target back = target_from_json(t.to_json()).value_or_throw();
    EXPECT_EQ(back.to_json(), t.to_json());
    EXPECT_EQ(back.str(), t.str());
  }
}

TEST(target, json_errors_name_the_key) {
  const auto message = [](const std::string& text) {
    const auto result = target_from_json(text);
    return result.ok() ? std::string("accepted") : support::render(result.diagnostics());
  };
  EXPECT_NE(message("{").find("not JSON"), std::string::npos);
  EXPECT_NE(message("[]").find("one object"), std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "featuers": []})").find("did you mean 'features'"),
            std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "cores": "two"})").find("'cores'"), std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "cores": 99999999999999999999})").find("'cores'"), std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "vector_bits": -1})").find("outside of"), std::string::npos);
  EXPECT_NE(message(R"({"cores": 2})").find("'triple'"), std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "kind": "llmv"})").find("did you mean 'llvm'"), std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "caches": [{"level": 1}]})").find("'bytes'"), std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "caches": [{"level": 1, "bytes": 1, "size": 2}]})").find("'size'"),
            std::string::npos);
  EXPECT_NE(message(R"({"triple": "x86_64-linux", "features": ["avx", 3]})").find("a feature"), std::string::npos);
}

TEST(target, text_tells_targets_apart) {
  Target a = parse_target("x86-64-v3").value_or_throw(), b = a;
  b.caches[0].bytes *= 2;
  EXPECT_NE(a.str(), b.str());
  b = a;
  b.features.insert("avx512f");
  EXPECT_NE(a.str(), b.str());
}

}  // namespace
}  // namespace lathe::target
