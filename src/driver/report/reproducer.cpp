#include "driver/report/reproducer.h"

#include <stdlib.h>

namespace lathe::driver {
namespace {

namespace fs = std::filesystem;

// A new folder, or nothing when there is no place to write to.
std::optional<fs::path> make_folder() {
  std::error_code failure;
  for (const fs::path& parent : {fs::current_path(failure), fs::temp_directory_path(failure)}) {
    std::string pattern = (parent / "lathe-reproducer-XXXXXX").string();
    if (!parent.empty() && ::mkdtemp(pattern.data())) return fs::path(pattern);
  }
  return std::nullopt;
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_of(" '\"$\\*?;&|<>()") == std::string::npos;
  return plain ? word : "'" + word + "'";
}

}  // namespace

std::string leave_reproducer(const Reproducer& r) {
  std::string sentence = "internal failure";
  if (!r.stage.empty()) sentence += " after " + r.stage;
  sentence += ": " + r.what.substr(0, r.what.find('\n')) + "\n";
  const auto folder = make_folder();
  if (!folder) return sentence;
  std::error_code failure;
  fs::path model = *folder / (r.model.empty() ? "model.onnx" : fs::path(r.model).filename().string());
  if (!r.model.empty()) {
    fs::copy_file(r.model, model, failure);
    // A script's constants lie in a file of their own.
    if (std::error_code absent; fs::exists(r.model + ".constants", absent))
      fs::copy_file(r.model + ".constants", model.string() + ".constants", failure);
  } else if (!r.content.empty()) {
    std::ofstream(model, std::ios::binary) << r.content;
  }
  std::string command = "lathe";
  for (const std::string& argument : r.arguments)
    command += " " + quoted(argument == "{model}" ? model.string() : argument);
  std::ofstream(*folder / "command.txt") << command << "\n";
  std::ofstream(*folder / "failure.txt") << "after: " << r.stage << "\n" << r.what << "\n";
  return sentence + "rerun it with: " + command + "   (what is needed lies in " + folder->string() + ")\n";
}

}  // namespace lathe::driver
