#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(skip_zeros, makes_of_programs_what_its_text_expects) { expect_text(skip_zeros, __FILE__); }

}  // namespace
}  // namespace lathe::tir
