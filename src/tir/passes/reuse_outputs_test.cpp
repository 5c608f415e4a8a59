#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(reuse_outputs, makes_of_programs_what_its_text_expects) { expect_text(reuse_outputs, __FILE__); }

}  // namespace
}  // namespace lathe::tir
