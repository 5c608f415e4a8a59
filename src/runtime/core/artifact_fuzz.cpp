// libFuzzer: a register program, verified and run; and a shared library, checked before it is loaded. An input is
// either the program itself, or changes to a program with every instruction in it: pairs of the index of a 4-byte word
// and what is added to it, so that an empty corpus gets past the header.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/core/every_instruction_fixture.h"
#include "runtime/core/model.h"

using namespace lathe::runtime;
using namespace lathe::runtime::testing;

namespace {

struct Change {
  uint16_t word;
  int16_t addend;  // an even one is halved and added, an odd one names a bit to flip
};

void apply_changes(std::vector<char>& program, const uint8_t* data, size_t size) {
  for (; size >= sizeof(Change); data += sizeof(Change), size -= sizeof(Change)) {
    Change change;
    std::memcpy(&change, data, sizeof(change));
    char* at = program.data() + change.word % (program.size() / 4) * 4;
    uint32_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    if (change.addend % 2 == 0)
      word += static_cast<uint32_t>(change.addend / 2);
    else
      word ^= 1u << (static_cast<uint32_t>(change.addend / 2) % 32);
    std::memcpy(at, &word, sizeof(word));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_library("input", data, size);
  if (size == 0) return 0;
  TestArtifact artifact;
  write_everything(artifact);
  if (data[0] % 8 == 0) {
    artifact.program.assign(data + 1, data + size);
    lathe::abi::ProgramView view;
    if (view.parse(artifact.program.data(), artifact.program.size()) != nullptr || view.kernels.count > 16) return 0;
    artifact.kernels.resize(view.kernels.count, artifact.kernels[0]);
  } else {
    apply_changes(artifact.program, data + 1, size - 1);
  }
  try_to_run(artifact);
  return 0;
}
