// Damaged files: whatever is cut off or changed, the answer is a module or diagnostics, never more.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

// A model of many kinds of node, attribute and weight.
std::string good_file() {
  ModelBuilder m;
  m.input("x", {"n", 2, 6, 5}).weight("w", {3, 2, 3, 3}, std::vector<float>(54, 0.5f)).weight("b", {3}, {1, 2, 3});
  m.integers("shape", {2}, {0, -1}).weight("g", {90, 4}, std::vector<float>(360, 0.25f));
  m.node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"auto_pad", "NOTSET"}});
  m.node("Relu", {"c"}, {"r"}).node("MaxPool", {"r"}, {"p"}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  m.node("Constant", {}, {"k"}, {{"value", tensor_proto(floats({1}, {3}))}}).node("Mul", {"r", "k"}, {"q"});
  m.node("Shape", {"q"}, {"s"}).node("Reshape", {"q", "shape"}, {"f"});
  m.node("Gemm", {"f", "g"}, {"z"}, {{"alpha", 0.5f}}).node("Softmax", {"z"}, {"y"}, {{"axis", -1}});
  return m.output("y").output("p").output("s").bytes();
}

// True when it was accepted.
bool import_bytes(const std::string& bytes) {
  const auto module = import_onnx(ModelBytes{.content = std::make_shared<const std::string>(bytes)});
  if (module.ok()) return true;
  EXPECT_FALSE(module.diagnostics().empty());
  for (const auto& d : module.diagnostics()) {
    EXPECT_FALSE(d.message.empty());
    EXPECT_LT(d.message.size(), 600u) << d.message;
    EXPECT_EQ(d.message.find('\n'), std::string::npos) << d.message;
  }
  return false;
}

TEST(Damage, every_cut_is_survived) {
  const std::string good = good_file();
  ASSERT_TRUE(import_bytes(good));
  int accepted = 0;
  for (size_t size = 0; size < good.size(); ++size) accepted += import_bytes(good.substr(0, size));
  EXPECT_LE(accepted, 3);  // only what comes behind the graph may be missing
}

TEST(Damage, thousands_of_changes_are_survived) {
  const std::string good = good_file();
  std::mt19937 random(7);
  int accepted = 0;
  constexpr int count = 6000;
  for (int i = 0; i < count; ++i) {
    std::string bytes = good;
    for (uint32_t changes = 1 + random() % 6; changes-- > 0;) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
          break;
        case 2:
          bytes.replace(at, std::min<size_t>(5, bytes.size() - at), "\xff\xff\xff\x7f\x08");
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
      }
    }
    accepted += import_bytes(bytes);
  }
  // Weights and names may change without harm; the rest must be noticed.
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, count - 100);
}

}  // namespace
}  // namespace lathe::onnx
