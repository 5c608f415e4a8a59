#include "driver/artifact/save.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "driver/executable.h"
#include "ops/operators.h"
#include "relax/block_builder.h"

namespace lathe::driver {
namespace {

namespace fs = std::filesystem;
using relax::Expr;

// relu(x + b) over [n, 5].
CompiledModelRef bias_model(const std::string& target = "native", const std::string& stop_after = "") {
  const relax::Var x =
      relax::relax_var("x", relax::tensor_info({ir::size_var("n"), ir::int64(5)}, ir::DType::float32()));
  relax::BlockBuilder b;
  b.begin_function("main", {x});
  b.begin_dataflow();
  const auto bias = ir::tensor_of<float>(ir::DType::float32(), {5}, {1, -2, 3, -4, 5});
  Expr y = b.call(ops::add, {x, relax::constant(bias)}).value_or_throw();
  y = b.emit_output(b.call(ops::relu, {y}).value_or_throw());
  b.end_block();
  b.end_function(y);
  CompileOptions options;
  options.target = target::parse_target(target).value_or_throw();
  options.stop_after = stop_after;
  return compile(b.finish(), options).value_or_throw();
}

class save_form : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lathe-save-XXXXXX").string();
    ASSERT_TRUE(::mkdtemp(pattern.data()));
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string file(const std::string& name) const { return (folder / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const CompiledModel& model, const std::string& name) const {
    save(model, *form_of_path(name).value_or_throw(), file(name)).value_or_throw();
  }
  fs::path folder;
};

TEST_F(save_form, a_library_opens_again_and_gives_the_same_bits) {
  const auto model = bias_model();
  write(*model, "m.so");
  const auto x = ir::tensor_of<float>(ir::DType::float32(), {2, 5}, {0, 1, 2, 3, 4, -1, 2.5f, -3, 9, -6});
  const auto saved = open(file("m.so")).value_or_throw()->run({x}).value_or_throw();
  const auto fresh = load(model).value_or_throw()->run({x}).value_or_throw();
  EXPECT_EQ(saved[0]->view(), fresh[0]->view());
  EXPECT_EQ(ir::float_at(*saved[0], 0), 1);
  EXPECT_EQ(ir::float_at(*saved[0], 9), 0);
}

// Each thread has a context of its own, whose run takes threads besides; the model, its weights and code are shared.
TEST_F(save_form, a_library_runs_on_several_threads_at_once) {
  write(*bias_model(), "m.so");
  const ExecutableRef shared = open(file("m.so")).value_or_throw();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const int64_t rows = 200 * (t + 1);
      std::vector<float> values(static_cast<size_t>(rows * 5), static_cast<float>(t));
      const auto x = ir::tensor_of<float>(ir::DType::float32(), {rows, 5}, values);
      const ExecutableRef own = open(file("m.so")).value_or_throw();
      for (const ExecutableRef& model : {shared, own}) {
        Session session = Session::create(model, {.threads = 2}).value_or_throw();
        for (int run = 0; run < 5; ++run) {
          const auto y = session.run({x}).value_or_throw();
          for (int64_t i = 0; i < rows * 5; ++i) {
            const double bias[] = {1, -2, 3, -4, 5};
            wrong += ir::float_at(*y[0], i) != std::max(0.0, t + bias[i % 5]);
          }
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(save_form, the_same_model_gives_the_same_bytes) {
  write(*bias_model(), "a.so");
  write(*bias_model(), "b.so");
  EXPECT_EQ(read("a.so"), read("b.so"));
  EXPECT_GT(read("a.so").size(), 1000u);
}

TEST_F(save_form, a_damaged_library_is_refused) {
  write(*bias_model(), "m.so");
  std::string bytes = read("m.so");
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(file("m.so"), std::ios::binary) << bytes;
  EXPECT_FALSE(open(file("m.so")).ok());
}

TEST_F(save_form, an_archive_has_a_header_named_after_it) {
  write(*bias_model(), "my-model.a");
  EXPECT_TRUE(read("my-model.a").starts_with("!<arch>\n"));
  EXPECT_NE(read("my-model.h").find("my_model_lathe_artifact"), std::string::npos);
}

TEST_F(save_form, texts_are_what_they_say) {
  const auto model = bias_model();
  write(*model, "m.ll");
  EXPECT_NE(read("m.ll").find("define "), std::string::npos);
  write(*model, "m.s");
  EXPECT_NE(read("m.s").find(".text"), std::string::npos);
  write(*model, "m.program");
  EXPECT_NE(read("m.program").find("fn main"), std::string::npos);
  write(*bias_model("native", "legalize"), "m.tir");
  EXPECT_NE(read("m.tir").find("T.prim_func"), std::string::npos);
}

TEST_F(save_form, the_null_target_has_a_listing_and_no_code) {
  const auto model = bias_model("null");
  write(*model, "m.listing");
  EXPECT_NE(read("m.listing").find("kernel "), std::string::npos);
  const auto refused = save(*model, *form_named("so").value_or_throw(), file("m.so"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "driver-no-code");
  EXPECT_FALSE(fs::exists(file("m.so")));
}

TEST_F(save_form, leaves_nothing_behind_where_it_cannot_write) {
  const auto model = bias_model();
  const auto refused = save(*model, *form_named("program").value_or_throw(), file("no/such/m.program"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "driver-cannot-write");
  EXPECT_NE(refused.diagnostics()[0].message.find("m.program"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(form_of_path, names_an_extension_that_says_nothing) {
  const auto refused = form_of_path("model.gif");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "driver-unknown-form");
  EXPECT_NE(refused.diagnostics()[0].message.find(".gif"), std::string::npos);
  EXPECT_FALSE(form_of_path("model").ok());
  EXPECT_EQ((*form_of_path("a/b.tar/model.so").value_or_throw()).name, "so");
}

}  // namespace
}  // namespace lathe::driver
