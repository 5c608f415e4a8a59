#include "onnxruntime.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "arrays/npy.h"
#include "codes.h"
#include "support/environment.h"
#include "support/temporary_folder.h"

namespace lathe::tool {
namespace {

namespace fs = std::filesystem;
using support::Diagnostic;
using support::Result;

// Arguments: model, folder, then input names, "--", output names. Arrays go through .npy files in the folder.
constexpr const char* script = R"(
import sys
model, folder, *names = sys.argv[1:]
try:
    import numpy, onnxruntime
except ImportError:
    sys.exit(3)
inputs, outputs = names[:names.index('--')], names[names.index('--') + 1:]
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
session = onnxruntime.InferenceSession(model, options, providers=['CPUExecutionProvider'])
feeds = {name: numpy.load(f'{folder}/in_{i}.npy') for i, name in enumerate(inputs)}
for i, array in enumerate(session.run(outputs, feeds)):
    numpy.save(f'{folder}/out_{i}.npy', array)
)";

Diagnostic absent(const std::string& why) { return {.code = codes::no_onnxruntime, .message = why}; }

// The exit code of a program with its output thrown away; -1 when it cannot be started.
int run_quietly(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int file : {0, 1, 2}) ::posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), support::process_environment());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Result<std::vector<ir::TensorData>> run_onnxruntime(const std::string& python, const std::string& model,
                                                    const driver::VerifyTrial& trial) {
  const auto folder = support::TemporaryFolder::of_the_system("verify");
  if (folder.path().empty()) return absent("not compared with ONNX Runtime: there is no folder for temporary files");
  std::vector<std::string> words = {python, "-c", script, model, folder.path().string()};
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    TRY(write_npy(folder.path() / fmt::format("in_{}.npy", i), npy_array(*trial.inputs[i].second)));
    words.push_back(trial.inputs[i].first);
  }
  words.push_back("--");
  for (const auto& output : trial.outputs) words.push_back(output.first);
  const int code = run_quietly(words);
  if (code == 3) return absent("not compared with ONNX Runtime: " + python + " has no module onnxruntime");
  if (code == -1) return absent("not compared with ONNX Runtime: there is no " + python);
  if (code != 0) return absent("not compared with ONNX Runtime: it does not run this model");
  std::vector<ir::TensorData> outputs;
  for (size_t i = 0; i < trial.outputs.size(); ++i)
    outputs.push_back(TRY(read_npy(folder.path() / fmt::format("out_{}.npy", i))));
  return outputs;
}

}  // namespace lathe::tool
