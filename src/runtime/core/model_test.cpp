// Opening artifacts: shared libraries made here with the C compiler, whole, in memory, with weights beside them,
// damaged.
#include "runtime/core/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "abi/seal.h"
#include "runtime/core/allocation_sweep.h"
#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {
namespace {

namespace fs = std::filesystem;

std::vector<char> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::string array_text(const std::vector<char>& bytes) {
  std::ostringstream out;
  for (const char byte : bytes) out << static_cast<int>(static_cast<unsigned char>(byte)) << ',';
  return out.str();
}

struct Edits {
  std::string architecture = host().architecture, features = "", version = "LATHE_ARTIFACT_VERSION";
  std::string symbol = LATHE_ARTIFACT_SYMBOL, magic = "LATHEART", weights_file = "";
};

struct model : ::testing::Test {
  static inline fs::path folder;
  static inline fs::path sources;
  static void SetUpTestSuite() {
    folder = fs::temp_directory_path() / ("lathe_model_" + std::to_string(getpid()));
    fs::create_directories(folder);
    sources = fs::absolute(fs::path(__FILE__)).parent_path().parent_path().parent_path();
  }
  static void TearDownTestSuite() { fs::remove_all(folder); }

  // y = relu(x + w) as a C file, compiled into a shared library.
  static fs::path build(const std::string& name, const Edits& edits) {
    TestArtifact made;
    write_dense(made, 3, {-1, 0, 1});
    const bool is_external = !edits.weights_file.empty();
    std::ofstream source(folder / (name + ".c"));
    source << "#include \"abi/artifact.h\"\n"
           << "static const _Alignas(8) unsigned char program[] = {" << array_text(made.program) << "};\n"
           << "static const _Alignas(4096) unsigned char weights[] = {" << array_text(made.weights) << "};\n"
           << "static int32_t add(const LatheServices* s, void* c, void* const* b, const int64_t* n) {\n"
           << "  for (int64_t i = 0; i < n[0] * n[1]; ++i) ((float*)b[2])[i] = ((float*)b[0])[i] + ((float*)b[1])[i % "
              "n[1]];\n"
           << "  return s == 0 || c == 0; }\n"
           << "static int32_t relu(const LatheServices* s, void* c, void* const* b, const int64_t* n) {\n"
           << "  for (int64_t i = 0; i < n[0] * n[1]; ++i) ((float*)b[1])[i] = ((float*)b[0])[i] > 0 ? "
              "((float*)b[0])[i] : 0;\n"
           << "  return s == 0 || c == 0; }\n"
           << "static const LatheKernel kernels[] = {add, relu};\n"
           << "static const LatheMetadata metadata[] = {{\"target\", \"native\"}, {\"builder\", \"cc\"}};\n"
           << "const LatheArtifact " << edits.symbol << " = {.magic = \"" << edits.magic
           << "\", .version = " << edits.version
           << ", .size = sizeof(LatheArtifact), .services_version = LATHE_SERVICES_VERSION, .services_size = "
              "sizeof(LatheServices),\n"
           << "  .architecture = \"" << edits.architecture << "\", .cpu_features = \"" << edits.features << "\",\n"
           << "  .metadata = metadata, .metadata_count = 2, .program = program, .program_bytes = sizeof(program),\n"
           << "  .kernels = kernels, .kernel_count = 2, .weights_bytes = sizeof(weights),\n"
           << (is_external ? "  .weights_file = \"" + edits.weights_file + "\"};\n" : "  .weights = weights};\n");
    source.close();
    write_file(folder / "weights.bin", made.weights);
    const fs::path library = folder / (name + ".so");
    const std::string command = "cc -std=c11 -O1 -shared -fPIC -I" + sources.string() + " -o " + library.string() +
                                " " + (folder / (name + ".c")).string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return library;
  }

  static Model open_file(const fs::path& path, const LatheOpenOptions* options = nullptr) {
    LatheModel* opened = nullptr;
    const int32_t status = lathe_open(path.c_str(), options, &opened);
    EXPECT_EQ(status == LATHE_OK, opened != nullptr);
    return Model(opened);
  }
  static void expect_right(const Model& opened) {
    ASSERT_NE(opened, nullptr) << last_message();
    const Context context = context_of(opened);
    HostTensor<float> x(f32, {2, 3}, {1, 2, 3, -4, -5, -6}), y(f32, {2, 3});
    const DLTensor *inputs[] = {&x.view}, *outputs[] = {&y.view};
    ASSERT_EQ(lathe_run_into(context.get(), inputs, 1, outputs, 1), LATHE_OK) << last_message();
    EXPECT_EQ(y.data, (std::vector<float>{0, 2, 4, 0, 0, 0}));
  }
};

TEST_F(model, opens_a_shared_library_and_runs_it) {
  const fs::path library = build("dense", {});
  const Model first = open_file(library), second = open_file(library);
  expect_right(first);
  expect_right(second);
  EXPECT_STREQ(lathe_metadata(first.get(), "builder"), "cc");
}

TEST_F(model, copies_its_weights_into_huge_pages_on_request) {
  const LatheOpenOptions options = {.size = sizeof(options), .huge_pages = 1};
  for (const char* file : {"", "weights.bin"}) {
    const Model opened = open_file(build("huge", {.weights_file = file}), &options);
    expect_right(opened);
    EXPECT_NE(opened->copied_weights, nullptr);
    EXPECT_EQ(opened->weights, opened->copied_weights);
    EXPECT_EQ(opened->mapping, nullptr);
  }
}

TEST_F(model, opens_libraries_that_lie_in_memory) {
  std::vector<char> bytes = read_file(build("memory", {}));
  std::vector<Model> opened;
  for (int i = 0; i < 3; ++i) {
    LatheModel* one = nullptr;
    ASSERT_EQ(lathe_open_memory(bytes.data(), bytes.size(), nullptr, &one), LATHE_OK) << last_message();
    opened.emplace_back(one);
  }
  std::fill(bytes.begin(), bytes.end(), 0);
  for (const Model& one : opened) expect_right(one);
}

TEST_F(model, finds_weights_beside_the_artifact_only) {
  expect_right(open_file(build("beside", {.weights_file = "weights.bin"})));
  EXPECT_EQ(open_file(build("escapes", {.weights_file = "../weights.bin"})), nullptr);
  EXPECT_NE(last_message().find("are not beside it"), std::string::npos) << last_message();
  const fs::path absent = build("absent", {.weights_file = "nothing.bin"});
  EXPECT_EQ(open_file(absent), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_IO_ERROR);
  const std::string elsewhere = (folder / "weights.bin").string();
  LatheOpenOptions options = {.size = sizeof(options),
                              .symbol = nullptr,
                              .weights_path = elsewhere.c_str(),
                              .runtime_kernels = nullptr,
                              .runtime_kernel_tables = 0};
  expect_right(open_file(absent, &options));
  write_file(folder / "nothing.bin", std::vector<char>(5));
  EXPECT_EQ(open_file(absent), nullptr);
  EXPECT_NE(last_message().find("has 5 bytes, but the artifact's weights have 12"), std::string::npos)
      << last_message();
}

TEST_F(model, opens_nothing_by_halves_without_memory) {
  const std::vector<char> bytes = read_file(build("swept", {.weights_file = "weights.bin"}));
  const std::string weights = (folder / "weights.bin").string();
  const LatheOpenOptions options = {.size = sizeof(options),
                                    .symbol = nullptr,
                                    .weights_path = weights.c_str(),
                                    .runtime_kernels = nullptr,
                                    .runtime_kernel_tables = 0};
  const auto status_of = [](int32_t status, LatheModel* opened) {
    EXPECT_EQ(status == LATHE_OK, opened != nullptr);
    lathe_close(opened);
    return status;
  };
  const Swept file = sweep([&] {
    LatheModel* opened = nullptr;
    const int32_t status = lathe_open((folder / "swept.so").c_str(), &options, &opened);
    return status_of(status, opened);
  });
  const Swept memory = sweep([&] {
    LatheModel* opened = nullptr;
    const int32_t status = lathe_open_memory(bytes.data(), bytes.size(), &options, &opened);
    return status_of(status, opened);
  });
  EXPECT_GE(file.refused, 8);
  EXPECT_GE(memory.refused, 8);
}

#if !defined(__has_feature) || (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
TEST_F(model, runs_from_a_c_program_that_links_the_runtime_alone) {
  const fs::path library = build("example", {}), program = folder / "run_model", build_folder = fs::current_path();
  const std::string compile = "cc -std=c11 -Wall -Wextra -Werror -I" + (sources / "abi").string() + " " +
                              (sources.parent_path() / "examples/01-c-interface/run_model.c").string() + " -o " +
                              program.string() + " -L" + (build_folder / "lib").string() +
                              " -llathe_runtime -Wl,-rpath," + (build_folder / "lib").string();
  ASSERT_EQ(std::system(compile.c_str()), 0) << compile;
  const fs::path output = folder / "run_model.txt";
  ASSERT_EQ(std::system((program.string() + " " + library.string() + " > " + output.string()).c_str()), 0);
  const std::vector<char> text = read_file(output);
  EXPECT_TRUE(std::string(text.begin(), text.end())
                  .starts_with("input x: [ N 3 ] of 32-bit elements\noutput y: [ N 3 ] of 32-bit elements\n  0\n"))
      << std::string(text.begin(), text.end());
}
#endif

TEST_F(model, says_in_a_sentence_what_does_not_fit) {
  EXPECT_EQ(open_file(build("arch", {.architecture = "vax"})), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_WRONG_TARGET);
  EXPECT_NE(last_message().find("compiled for vax, but this machine is"), std::string::npos) << last_message();
  EXPECT_EQ(open_file(build("features", {.features = "quantum"})), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_WRONG_TARGET);
  EXPECT_NE(last_message().find("'quantum'"), std::string::npos) << last_message();
  EXPECT_EQ(open_file(build("version", {.version = "77"})), nullptr);
  EXPECT_NE(last_message().find("format version 77"), std::string::npos) << last_message();
  EXPECT_EQ(open_file(build("magic", {.magic = "NOTLATHE"})), nullptr);
  EXPECT_NE(last_message().find("not a Lathe artifact"), std::string::npos) << last_message();
  const fs::path prefixed = build("prefixed", {.symbol = "digits_lathe_artifact"});
  EXPECT_EQ(open_file(prefixed), nullptr);
  EXPECT_NE(last_message().find("it has no symbol 'lathe_artifact_v1'"), std::string::npos) << last_message();
  LatheOpenOptions options = {.size = sizeof(options),
                              .symbol = "digits_lathe_artifact",
                              .weights_path = nullptr,
                              .runtime_kernels = nullptr,
                              .runtime_kernel_tables = 0};
  expect_right(open_file(prefixed, &options));
}

TEST_F(model, refuses_files_that_are_no_libraries) {
  EXPECT_EQ(open_file(folder / "does-not-exist.so"), nullptr);
  EXPECT_EQ(lathe_last_error()->code, LATHE_IO_ERROR);
  EXPECT_EQ(open_file(folder), nullptr);
  write_file(folder / "empty.so", {});
  EXPECT_EQ(open_file(folder / "empty.so"), nullptr);
  write_file(folder / "text.so", std::vector<char>(1000, 'x'));
  EXPECT_EQ(open_file(folder / "text.so"), nullptr);
  EXPECT_NE(last_message().find("not a 64-bit shared library"), std::string::npos) << last_message();
  EXPECT_NE(lathe_open(nullptr, nullptr, nullptr), LATHE_OK);
}

TEST_F(model, refuses_every_truncation) {
  const std::vector<char> whole = read_file(build("whole", {}));
  const fs::path part = folder / "part.so";
  for (size_t size = 0; size < whole.size(); size += 97) {
    write_file(part, {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
    EXPECT_EQ(open_file(part), nullptr) << size;
    EXPECT_EQ(lathe_last_error()->code == LATHE_OK, false);
  }
}

TEST_F(model, notices_any_changed_byte_of_a_sealed_file) {
  std::vector<char> bytes = read_file(build("sealed", {}));
  const size_t body = bytes.size();
  const abi::Seal seal = abi::make_seal(bytes.data(), body);
  bytes.insert(bytes.end(), reinterpret_cast<const char*>(&seal), reinterpret_cast<const char*>(&seal + 1));
  write_file(folder / "sealed.so", bytes);
  expect_right(open_file(folder / "sealed.so"));
  const fs::path changed = folder / "changed.so";
  for (size_t at = 64; at < bytes.size() - 8; at += 211) {  // not the header, which is looked at first, nor the magic
    std::vector<char> copy = bytes;
    copy[at] = static_cast<char>(copy[at] ^ (1 << at % 8));
    EXPECT_NE(check_library("changed", copy.data(), copy.size()), 0) << at;
  }
  bytes[body / 2] = static_cast<char>(bytes[body / 2] + 1);
  write_file(changed, bytes);
  EXPECT_EQ(open_file(changed), nullptr);
  EXPECT_NE(last_message().find("changed"), std::string::npos) << last_message();
}

TEST(seal, leaves_out_what_it_skips) {
  std::vector<char> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  const abi::Seal seal = abi::make_seal(bytes.data(), bytes.size(), 100, 500);
  bytes.insert(bytes.end(), reinterpret_cast<const char*>(&seal), reinterpret_cast<const char*>(&seal + 1));
  EXPECT_EQ(abi::check_seal(bytes.data(), bytes.size()), abi::SealState::intact);
  bytes[300] = 0;
  EXPECT_EQ(abi::check_seal(bytes.data(), bytes.size()), abi::SealState::intact);
  for (const size_t at : {size_t{0}, size_t{99}, size_t{600}, size_t{999}}) {
    std::vector<char> copy = bytes;
    copy[at] = static_cast<char>(copy[at] ^ 1);
    EXPECT_EQ(abi::check_seal(copy.data(), copy.size()), abi::SealState::broken) << at;
  }
  EXPECT_EQ(abi::check_seal(bytes.data(), 20), abi::SealState::absent);
}

}  // namespace
}  // namespace lathe::runtime::testing
