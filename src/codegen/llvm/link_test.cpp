#include "codegen/llvm/link.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "abi/artifact.h"
#include "abi/seal.h"
#include "codegen/llvm/read_object_test.h"
#include "codegen/llvm/run_kernel_test.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT
namespace fs = std::filesystem;

// B[i] = A[i] * factor.
Kernel scale(const char* name, double factor) {
  const Buffer a = buffer("A", {int64(8)}, DType::float32()), b = buffer("B", {int64(8)}, DType::float32());
  const Var i = var("i");
  const Stmt body =
      make<For>(i, int64(0), int64(8), ForKind::serial,
                Stmt(make<BufferStore>(b, load(a, {i}) * constant(DType::float32(), factor), std::vector<Expr>{i})));
  return {name, prim_func({a, b}, body)};
}

class Link : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::path(testing::TempDir()) / fmt::format("lathe_link_{}", ::getpid());
    fs::create_directories(folder / "other");
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<char>(i * 7);
  }
  void TearDown() override { fs::remove_all(folder); }

  ArtifactContents contents(const CompiledKernels& kernels) const {
    return {.kernels = &kernels,
            .program = program,
            .metadata = {{"builder", "test"}, {"target", kernels.target.str()}},
            .weights = {{0, std::string_view(weights).substr(0, 100), {1, 2}},
                        {4096, std::string_view(weights).substr(100), {3, 4}}},
            .weights_bytes = 5000,
            .weights_file = {},
            .runtime_kernels = {"strings.concat"}};
  }
  std::string read(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  fs::path folder;
  std::string program = "pretend program", weights = std::string(1004, 'w');
};

TEST_F(Link, a_shared_library_holds_what_was_given) {
  const CompiledKernels kernels =
      compile_kernels({scale("twice", 2), scale("thrice", 3), scale("again", 2)}, test::native()).value_or_throw();
  EXPECT_EQ(kernels.kernels[0].symbol, kernels.kernels[2].symbol) << "equal kernels share their code";
  const std::string path = (folder / "model.so").string();
  link_artifact(contents(kernels), {}, path).value_or_throw();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto* artifact = static_cast<const LatheArtifact*>(::dlsym(library, LATHE_ARTIFACT_SYMBOL));
  ASSERT_NE(artifact, nullptr);
  EXPECT_EQ(std::memcmp(artifact->magic, LATHE_ARTIFACT_MAGIC, 8), 0);
  EXPECT_EQ(artifact->size, sizeof(LatheArtifact));
  EXPECT_EQ(std::string(static_cast<const char*>(artifact->program), artifact->program_bytes), program);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(artifact->program) % 8, 0u);
  EXPECT_STREQ(artifact->metadata[0].key, "builder");
  EXPECT_STREQ(artifact->metadata[0].value, "test");
  EXPECT_EQ(artifact->metadata_count, 2u);
  EXPECT_STREQ(artifact->runtime_kernels[0].name, "strings.concat");
  EXPECT_EQ(artifact->runtime_kernels[0].function, nullptr);
  ASSERT_NE(artifact->weights, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(artifact->weights) % LATHE_WEIGHTS_ALIGNMENT, 0u);
  EXPECT_EQ(artifact->weights_bytes, 5000u);
  const auto* w = static_cast<const char*>(artifact->weights);
  EXPECT_EQ(std::string(w, 100), weights.substr(0, 100));
  EXPECT_EQ(w[100], 0);
  EXPECT_EQ(std::string(w + 4096, 904), weights.substr(100));
  EXPECT_EQ(content_hash(contents(kernels)).high, artifact->content_hash[0]);
  ASSERT_EQ(artifact->kernel_count, 3u);
  std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8}, b(8);
  test::CallState state;
  void* buffers[] = {a.data(), b.data()};
  for (const int k : {0, 1, 2}) {
    EXPECT_EQ(artifact->kernels[k](&test::services(), &state, buffers, nullptr), 0);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(b[i], a[i] * (k == 1 ? 3.0f : 2.0f));
  }
  ::dlclose(library);
}

TEST_F(Link, profilers_find_the_kernels_of_a_library_by_name) {
  const CompiledKernels kernels =
      compile_kernels({scale("twice", 2), scale("thrice", 3), scale("again", 2)}, test::native()).value_or_throw();
  link_artifact(contents(kernels), {}, (folder / "m.so").string()).value_or_throw();
  std::set<std::string> names;
  for (const auto& [name, address] : test::functions_of(read(folder / "m.so"))) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"lathe::thrice", "lathe::twice|again"}));
  // Objects keep the symbols by which equal kernels of two models are one.
  link_artifact(contents(kernels), {.form = ArtifactForm::object, .prefix = "m"}, (folder / "m.o").string())
      .value_or_throw();
  names.clear();
  for (const auto& [name, address] : test::functions_of(read(folder / "m.o"))) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{kernels.kernels[0].symbol, kernels.kernels[1].symbol}));
}

TEST_F(Link, gives_equal_bytes_in_any_folder_with_any_number_of_threads) {
  const std::vector<Kernel> source = {scale("a", 2), scale("b", 3), scale("c", 4), scale("d", 5)};
  const CompiledKernels one = compile_kernels(source, test::native(), {.threads = 1}).value_or_throw();
  const CompiledKernels four = compile_kernels(source, test::native(), {.threads = 4}).value_or_throw();
  for (const auto& [form, name] : {std::pair{ArtifactForm::shared_library, "m.so"},
                                   std::pair{ArtifactForm::archive, "m.a"}, std::pair{ArtifactForm::object, "m.o"}}) {
    const LinkOptions options{.form = form, .prefix = "model"};
    link_artifact(contents(one), options, (folder / name).string()).value_or_throw();
    link_artifact(contents(four), options, (folder / "other" / name).string()).value_or_throw();
    const std::string first = read(folder / name);
    EXPECT_FALSE(first.empty());
    EXPECT_TRUE(first == read(folder / "other" / name)) << name;
    EXPECT_EQ(first.find(folder.string()), std::string::npos) << "a path is in the file";
    EXPECT_EQ(first.find("partial"), std::string::npos) << "a path is in the file";
  }
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos);
}

TEST_F(Link, the_seal_notices_a_change_but_not_in_the_weights) {
  const CompiledKernels kernels = compile_kernels({scale("a", 2)}, test::native()).value_or_throw();
  const std::string path = (folder / "m.so").string();
  link_artifact(contents(kernels), {}, path).value_or_throw();
  std::string bytes = read(path);
  EXPECT_EQ(abi::check_seal(bytes.data(), bytes.size()), abi::SealState::intact);
  std::string changed = bytes;
  changed[bytes.find("pretend program")] ^= 1;
  EXPECT_EQ(abi::check_seal(changed.data(), changed.size()), abi::SealState::broken);
  changed = bytes;
  const size_t at = bytes.find(weights.substr(200, 100));
  ASSERT_NE(at, std::string::npos);
  changed[at] ^= 1;
  EXPECT_EQ(abi::check_seal(changed.data(), changed.size()), abi::SealState::intact);
}

TEST_F(Link, external_weights_lie_beside) {
  const CompiledKernels kernels = compile_kernels({scale("a", 2)}, test::native()).value_or_throw();
  ArtifactContents with_file = contents(kernels);
  with_file.weights_file = "m.weights";
  link_artifact(with_file, {}, (folder / "m.so").string()).value_or_throw();
  EXPECT_EQ(read(folder / "m.weights").size(), 5000u);
  EXPECT_EQ(read(folder / "m.weights").substr(4096), weights.substr(100));
  EXPECT_EQ(read(folder / "m.so").find(weights.substr(200, 100)), std::string::npos);
}

// Large and small ones in turn, more of them between two multiples of a huge page than one call of the system takes.
TEST_F(Link, many_megabytes_of_weights_lie_where_they_belong) {
  const CompiledKernels kernels = compile_kernels({scale("a", 2)}, test::native()).value_or_throw();
  std::string source(9 << 20, '\0');
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 + i / 251);
  ArtifactContents many = contents(kernels);
  many.weights.clear();
  std::string expected;
  const auto add = [&](size_t from, size_t size) {
    expected.resize((expected.size() + 63) / 64 * 64);
    many.weights.push_back({static_cast<int64_t>(expected.size()), std::string_view(source).substr(from, size), {}});
    expected += source.substr(from, size);
  };
  add(0, (5 << 20) + 17);
  for (size_t i = 0; i < 1500; ++i) add(i, 1 + i % 130);
  add(3, 9 << 20);
  add(11, 63);
  expected.resize(expected.size() + 5000);
  many.weights_bytes = static_cast<int64_t>(expected.size());
  const std::string path = (folder / "m.so").string();
  link_artifact(many, {}, path).value_or_throw();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto* artifact = static_cast<const LatheArtifact*>(::dlsym(library, LATHE_ARTIFACT_SYMBOL));
  ASSERT_EQ(artifact->weights_bytes, expected.size());
  EXPECT_TRUE(std::string_view(static_cast<const char*>(artifact->weights), expected.size()) == expected);
  ::dlclose(library);
  EXPECT_LT(fs::file_size(path), expected.size() + (64 << 10)) << "huge pages cost addresses, not bytes of the file";
  many.weights_file = "m.weights";
  link_artifact(many, {}, path).value_or_throw();
  EXPECT_TRUE(read(folder / "m.weights") == expected);
}

TEST_F(Link, archives_of_two_models_link_into_one_program) {
  // Both hold the same kernel and the same weights.
  const CompiledKernels one = compile_kernels({scale("a", 2)}, test::native()).value_or_throw();
  const CompiledKernels two = compile_kernels({scale("b", 2), scale("c", 3)}, test::native()).value_or_throw();
  link_artifact(contents(one), {.form = ArtifactForm::archive, .prefix = "first"}, (folder / "first.a").string())
      .value_or_throw();
  link_artifact(contents(two), {.form = ArtifactForm::object, .prefix = "second"}, (folder / "second.o").string())
      .value_or_throw();
  std::ofstream(folder / "first.h") << artifact_header("first");
  std::ofstream(folder / "main.c") << "#include \"first.h\"\n"
                                      "extern const struct LatheArtifact second_lathe_artifact;\n"
                                   << "int main(void) { const char *a = (const char*)&first_lathe_artifact, *b = "
                                      "(const char*)&second_lathe_artifact;\n"
                                   << "  return a[0] == 'L' && b[0] == 'L' && a != b ? 7 : 1; }\n";
  const std::string at = folder.string();
  const std::string build = fmt::format("clang-19 -fuse-ld=lld -o {0}/main {0}/main.c {0}/second.o {0}/first.a", at);
  ASSERT_EQ(std::system(build.c_str()), 0);
  EXPECT_EQ(WEXITSTATUS(std::system((at + "/main").c_str())), 7);
}

TEST_F(Link, takes_the_place_of_a_file_or_a_link_and_of_nothing_else) {
  const CompiledKernels kernels = compile_kernels({scale("a", 2)}, test::native()).value_or_throw();
  link_artifact(contents(kernels), {}, (folder / "first.so").string()).value_or_throw();
  const std::string expected = read(folder / "first.so");
  std::ofstream(folder / "old.so") << "what was there";
  fs::create_symlink(folder / "old.so", folder / "link.so");
  std::ifstream opened(folder / "old.so");
  for (const char* name : {"link.so", "old.so", "old.so"}) {
    link_artifact(contents(kernels), {}, (folder / name).string()).value_or_throw();
    EXPECT_TRUE(read(folder / name) == expected) << name;
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / name))) << name;
  }
  std::string still;
  std::getline(opened, still);
  EXPECT_EQ(still, "what was there") << "whoever has a file open keeps it";
  fs::create_directory(folder / "folder.so");
  std::ofstream(folder / "folder.so" / "precious") << "kept";
  EXPECT_FALSE(link_artifact(contents(kernels), {}, (folder / "folder.so").string()).ok());
  EXPECT_EQ(read(folder / "folder.so" / "precious"), "kept");
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos);
}

TEST_F(Link, refuses_what_it_cannot_write) {
  const CompiledKernels kernels = compile_kernels({scale("a", 2)}, test::native()).value_or_throw();
  const auto nowhere = link_artifact(contents(kernels), {}, (folder / "missing" / "m.so").string());
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.diagnostics()[0].code.name, "codegen-file-failed");
  const auto prefix =
      link_artifact(contents(kernels), {.form = ArtifactForm::archive, .prefix = "a-b"}, (folder / "m.a").string());
  ASSERT_FALSE(prefix.ok());
  EXPECT_EQ(prefix.diagnostics()[0].code.name, "codegen-link-failed");
}

}  // namespace
}  // namespace lathe::codegen
