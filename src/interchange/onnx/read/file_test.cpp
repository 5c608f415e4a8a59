#include "interchange/onnx/read/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

namespace fs = std::filesystem;

// A folder with a model's surroundings: data inside, data outside, links, a pipe.
class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("onnx_file_test_" + std::to_string(::getpid()));
    fs::create_directories(root_ / "model" / "sub");
    write(root_ / "outside.bin", "outside bytes");
    write(root_ / "model" / "data.bin", "inside bytes");
    write(root_ / "model" / "sub" / "data.bin", "bytes further in");
    write(root_ / "model" / "empty.bin", "");
    fs::create_symlink("../outside.bin", root_ / "model" / "link.bin");
    fs::create_symlink("..", root_ / "model" / "folder");
    fs::create_hard_link(root_ / "outside.bin", root_ / "model" / "hard.bin");
    ::mkfifo((root_ / "model" / "pipe").c_str(), 0600);
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  support::Result<Bytes> external(const std::string& location) const {
    return map_external((root_ / "model").string(), location, support::ModelNode{"m.onnx", "", ""});
  }
  std::string refusal(const std::string& location) const {
    const auto bytes = external(location);
    EXPECT_FALSE(bytes.ok()) << location;
    return bytes.ok() ? "" : testing::text_of(bytes.diagnostics());
  }

  fs::path root_;
};

TEST_F(FileTest, external_data_inside_the_folder_is_mapped) {
  EXPECT_EQ(external("data.bin")->view, "inside bytes");
  EXPECT_EQ(external("./data.bin")->view, "inside bytes");
  EXPECT_EQ(external("sub/data.bin")->view, "bytes further in");
  EXPECT_EQ(external("sub//./data.bin")->view, "bytes further in");
  EXPECT_EQ(external("empty.bin")->view, "");
}

TEST_F(FileTest, external_data_elsewhere_is_refused) {
  EXPECT_NE(refusal((root_ / "model" / "data.bin").string()).find("absolute path"), std::string::npos);
  EXPECT_NE(refusal("../outside.bin").find("leads out"), std::string::npos);
  EXPECT_NE(refusal("sub/../../outside.bin").find("leads out"), std::string::npos);
  EXPECT_NE(refusal("sub/../data.bin").find("leads out"), std::string::npos);
  EXPECT_NE(refusal("link.bin").find("symbolic link"), std::string::npos);
  EXPECT_NE(refusal("folder/outside.bin").find("symbolic link"), std::string::npos);
  EXPECT_NE(refusal("hard.bin").find("has 2 hard links"), std::string::npos);
  EXPECT_NE(refusal("pipe").find("not a regular file"), std::string::npos);
  EXPECT_NE(refusal("nowhere.bin").find("onnx-external-data"), std::string::npos);
  EXPECT_NE(refusal("").find("names no file"), std::string::npos);
  EXPECT_NE(refusal(".").find("folder"), std::string::npos);
  EXPECT_NE(refusal("sub").find("folder"), std::string::npos);
  EXPECT_NE(refusal("sub/").find("folder"), std::string::npos);
  EXPECT_NE(refusal("data.bin/x").find("cannot be opened"), std::string::npos);
  EXPECT_NE(refusal(std::string("data.bin\0.txt", 13)).find("zero byte"), std::string::npos);
  EXPECT_FALSE(map_external("", "data.bin", {}).ok());
}

TEST_F(FileTest, models_are_regular_files) {
  EXPECT_EQ(map_file((root_ / "outside.bin").string())->view, "outside bytes");
  const auto refused = [&](const fs::path& path) { return testing::text_of(map_file(path.string()).diagnostics()); };
  EXPECT_NE(refused(root_ / "model").find("is a folder"), std::string::npos);
  EXPECT_NE(refused(root_ / "none.onnx").find("onnx-cannot-read"), std::string::npos);
  EXPECT_NE(refused(root_ / "model" / "pipe").find("not a regular file"), std::string::npos);
}

TEST_F(FileTest, a_models_weights_are_taken_from_beside_it) {
  const auto model = [&](const std::string& offset, const std::string& length) {
    testing::ModelBuilder m;
    m.input("x", {3}).node("Add", {"x", "w"}, {"y"}).output("y");
    auto& w = *m.proto.mutable_graph()->add_initializer();
    w.set_name("w");
    w.add_dims(3);
    w.set_data_type(schema::TensorProto::FLOAT);
    w.set_data_location(schema::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair{"location", std::string("w.bin")}, {"offset", offset}, {"length", length}})
      if (!value.empty()) {
        auto& entry = *w.add_external_data();
        entry.set_key(key);
        entry.set_value(value);
      }
    write(root_ / "model" / "m.onnx", m.bytes());
    return import_onnx((root_ / "model" / "m.onnx").string());
  };
  const float values[] = {9, 1, 2, 3, 9};
  write(root_ / "model" / "w.bin", std::string(reinterpret_cast<const char*>(values), sizeof values));
  const auto good = model("4", "12");
  ASSERT_TRUE(good.ok()) << testing::text_of(good.diagnostics());
  testing::expect_floats((*relax::evaluate(*good, "main", {testing::floats({3}, {10, 20, 30})}))[0], {3}, {11, 22, 33});
  EXPECT_TRUE(model("", "").ok());
  const auto refused = [&](const std::string& offset, const std::string& length) {
    const auto module = model(offset, length);
    EXPECT_FALSE(module.ok());
    return module.ok() ? "" : testing::text_of(module.diagnostics());
  };
  EXPECT_NE(refused("12", "12").find("beyond the file's end at 20"), std::string::npos);
  EXPECT_NE(refused("18446744073709551608", "12").find("beyond the file's end"), std::string::npos);
  EXPECT_NE(refused("-4", "12").find("'-4'"), std::string::npos);
  EXPECT_NE(refused("0", "8").find("8 bytes"), std::string::npos);
  EXPECT_NE(refused("0x4", "12").find("no number"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
