#include "driver/report/explain/explanation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "driver/script_file.h"
#include "support/temporary_folder.h"

namespace lathe::driver {
namespace {

using nlohmann::json;

TEST(explanation, the_hottest_of_the_innermost_loops_is_counted) {
  const CodeShape shape = shape_of_assembly(
      "f:\n"
      "\tpushq %rbx\n"
      ".LBB0_1:                # Parent Loop\n"
      "\txorl %eax, %eax\n"
      ".LBB0_2:                # Inner Loop\n"
      "\tvmovups (%rsi,%rax,4), %zmm0\n"
      "\tvfmadd231ps (%rdx,%rax,4), %zmm0, %zmm17\n"
      "\tvmovaps %zmm17, 64(%rsp)           # 64-byte Spill\n"
      "\tvmovaps 64(%rsp), %zmm3            # 64-byte Reload\n"
      "\tprefetcht0 (%rdi)\n"
      "\tvmovups %zmm17, (%rdi,%rax,4)\n"
      "\taddq $16, %rax\n"
      "\tjne .LBB0_2\n"
      ".LBB0_3:\n"
      "\tvaddps %zmm1, %zmm2, %zmm4\n"
      "\tvaddps %zmm1, %zmm2, %zmm5\n"
      "\tdecq %rcx\n"
      "\tjne .LBB0_1\n"
      "\tretq\n");
  EXPECT_EQ(shape.instructions, 15);
  EXPECT_EQ(shape.spills, 2);
  ASSERT_TRUE(shape.inner.has_value());
  EXPECT_EQ(shape.inner->instructions, 8);
  EXPECT_EQ(shape.inner->arithmetic, 1);
  EXPECT_EQ(shape.inner->loads, 3);
  EXPECT_EQ(shape.inner->stores, 2);
  EXPECT_EQ(shape.inner->spills, 2);
  EXPECT_EQ(shape.inner->vector_registers, 3);
}

TEST(explanation, loops_of_aarch64_are_found) {
  const CodeShape shape = shape_of_assembly(
      "f:\n"
      ".LBB0_1:\n"
      "\tldp q0, q1, [x1], #32\n"
      "\tfmla v2.4s, v0.4s, v1.4s\n"
      "\tstr q2, [x2]\n"
      "\tsubs x0, x0, #1\n"
      "\tb.ne .LBB0_1\n"
      "\tret\n");
  ASSERT_TRUE(shape.inner.has_value());
  EXPECT_EQ(shape.inner->instructions, 5);
  EXPECT_EQ(shape.inner->arithmetic, 1);
  EXPECT_EQ(shape.inner->loads, 1);
  EXPECT_EQ(shape.inner->stores, 1);
  EXPECT_EQ(shape.inner->vector_registers, 3);
}

constexpr char explained_program[] = R"(# lathe script 1
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 64), "float32"), w: R.Tensor((64, 32), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            s = R.sum(z, axis=[1])
            R.output(s)
        return s
)";

json explained(const std::optional<MeasuredRuns>& runs, std::string* page = nullptr) {
  const auto folder = support::TemporaryFolder::of_the_system("explain");
  const std::string path = (folder.path() / "program.relax").string();
  std::ofstream(path) << explained_program;
  const ir::IRModule module = read_script(path).value_or_throw();
  CompileOptions options;
  options.target = target::parse_target("native").value_or_throw();
  Explanation explanation("a </script> name", module);
  options.on_change = explanation.watch();
  const CompiledModelRef compiled = compile(module, options).value_or_throw();
  explanation.finish(*compiled, options, runs).value_or_throw();
  if (page) *page = explanation.page();
  EXPECT_EQ(explanation.timeline().empty(), !runs);
  return json::parse(explanation.json());
}

TEST(explanation, says_of_each_kernel_what_it_is) {
  const json all = explained(std::nullopt);
  ASSERT_EQ(all["kernels"].size(), 2u);
  const json& product = all["kernels"][0];
  EXPECT_EQ(product["rule"], "gemm");
  EXPECT_EQ(product["operations"], 2.0 * 8 * 64 * 32 + 8 * 32);
  for (const char* text : {"tensor_program", "scheduled", "trace", "kernel", "ll", "asm"})
    EXPECT_FALSE(product[text].get<std::string>().empty()) << text;
  EXPECT_NE(product["tensor_program"], product["scheduled"]);
  EXPECT_NE(product["trace"].get<std::string>().find("sch.split("), std::string::npos);
  EXPECT_GT(product["code"]["inner"]["arithmetic"].get<int>(), 0);
  EXPECT_FALSE(product["declined"].empty());
  EXPECT_FALSE(product.contains("us"));
}

TEST(explanation, shows_the_graph_before_and_after_and_the_memory) {
  const json all = explained(std::nullopt);
  const auto operations = [](const json& graph) {
    std::vector<std::string> found;
    for (const json& node : graph["nodes"]) found.push_back(node["op"]);
    return found;
  };
  EXPECT_EQ(operations(all["graphs"][0]), (std::vector<std::string>{"input", "input", "matmul", "nn.relu", "sum"}));
  EXPECT_EQ(all["graphs"][0]["nodes"][2]["inputs"], (json{0, 1}));
  EXPECT_EQ(all["graphs"][1]["nodes"].size(), 4u);
  EXPECT_TRUE(all["graphs"][1]["nodes"][3]["output"].get<bool>());
  ASSERT_EQ(all["memory"]["tensors"].size(), 1u);
  EXPECT_EQ(all["memory"]["tensors"][0]["bytes"], 8 * 32 * 4);
  EXPECT_EQ(all["memory"]["tensors"][0]["from"], 0);
  EXPECT_EQ(all["memory"]["tensors"][0]["to"], 1);
}

TEST(explanation, holds_runs_against_limits) {
  const std::string kernel = explained(std::nullopt)["kernels"][0]["name"];
  MeasuredRuns runs;
  runs.runs = 10;
  runs.instructions = {{kernel, "dense", 10, 40'000}, {"match_shape", "", 10, 10'000}};
  runs.machine = {.operations_per_second = 1e9, .levels = {{"memory", 0, 1e9}}};
  std::string page;
  const json all = explained(runs, &page);
  EXPECT_EQ(all["kernels"][0]["us"], 4.0);
  EXPECT_EQ(all["kernels"][0]["share"], 0.8);
  EXPECT_EQ(all["kernels"][0]["bound"], "compute");
  EXPECT_NEAR(all["kernels"][0]["limit_us"].get<double>(), (2.0 * 8 * 64 * 32 + 8 * 32) / 1e3, 1e-6);
  EXPECT_EQ(page.find("a </script> name"), std::string::npos);
  EXPECT_EQ(page.find("@data@"), std::string::npos);
  EXPECT_NE(page.find("traceEvents"), std::string::npos);
}

}  // namespace
}  // namespace lathe::driver
