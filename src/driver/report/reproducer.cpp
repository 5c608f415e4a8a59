#include "driver/report/reproducer.h"

#include <stdlib.h>

#include "driver/model_file.h"
#include "driver/report/crash.h"
#include "driver/script_file.h"
#include "interchange/onnx/read/external_files.h"
#include "support/environment.h"
#include "tir/stmt.h"

namespace lathe::driver {
namespace {

namespace fs = std::filesystem;

// A new folder, or nothing when there is no place to write to.
std::optional<fs::path> make_folder() {
  std::error_code failure;
  std::vector<fs::path> parents;
  if (const std::string asked = support::read_environment().reproducer_dir; !asked.empty()) {
    parents.push_back(fs::absolute(asked, failure));
    fs::create_directories(parents.back(), failure);
  }
  parents.push_back(fs::current_path(failure));
  parents.push_back(fs::temp_directory_path(failure));
  for (const fs::path& parent : parents) {
    std::string pattern = (parent / "lathe-reproducer-XXXXXX").string();
    if (!parent.empty() && ::mkdtemp(pattern.data())) return fs::path(pattern);
  }
  return std::nullopt;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"$\\*?;&|<>()`!#~[]{}") == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string absolute(const std::string& path) {
  std::error_code failure;
  const fs::path whole = fs::absolute(path, failure);
  return failure ? path : whole.string();
}

bool has_graph(const ir::IRModule& module) {
  return std::any_of(module.begin(), module.end(),
                     [](const auto& entry) { return !entry.second.template is<tir::PrimFunc>(); });
}

// The folder as it fills, and what stands for what in the arguments.
class Folder {
 public:
  explicit Folder(fs::path path) : path_(std::move(path)) { stands_for_["{folder}"] = path_.string(); }

  void put_model(const Reproducer& r) {
    std::string& model = stands_for_["{model}"];
    if (!r.model.empty()) {
      model = copy_model(r.model);
    } else if (!r.content.empty()) {
      model = (path_ / "model.onnx").string();
      std::ofstream(model, std::ios::binary) << r.content;
    } else if (r.module) {
      model = (path_ / (has_graph(*r.module) ? "model.relax" : "model.tir")).string();
      write_program(*r.module, model);
    }
  }

  void put(const ReproducerFile& file) {
    const fs::path to = path_ / file.name;
    std::string& path = stands_for_["{" + file.name + "}"];
    path = file.write ? (file.write(to.string()) ? to.string() : file.path) : copy(file.path, to);
  }

  std::string filled_in(std::string argument) const {
    for (const auto& [name, path] : stands_for_)
      for (size_t at = argument.find(name); at != std::string::npos; at = argument.find(name, at + path.size()))
        argument.replace(at, name.size(), path);
    return argument;
  }

 private:
  // The path of the copy, or of the original where there is none.
  std::string copy(const std::string& from, const fs::path& to) {
    std::error_code failure;
    const uint64_t size = fs::file_size(from, failure);
    if (failure || size > left_) return absolute(from);
    fs::create_directories(to.parent_path(), failure);
    if (!fs::copy_file(from, to, failure)) return absolute(from);
    left_ -= size;
    return to.string();
  }

  // With what lies beside it: a script's constants, a model's external data. All of it, or none.
  std::string copy_model(const std::string& from) {
    const fs::path original(from);
    std::vector<std::string> beside;
    std::error_code absent;
    if (!is_script(from) && original.extension() != ".so") beside = onnx::external_files(from);
    if (fs::exists(from + ".constants", absent)) beside.push_back(original.filename().string() + ".constants");
    uint64_t whole = 0;
    for (const std::string& name : beside) whole += fs::file_size(original.parent_path() / name, absent);
    if (whole > left_) return absolute(from);
    for (const std::string& name : beside) copy((original.parent_path() / name).string(), path_ / name);
    return copy(from, path_ / original.filename());
  }

  // A program that is broken may not print.
  static void write_program(const ir::IRModule& module, const std::string& path) {
    try {
      if (const support::Status written = write_script(module, path); !written.ok())
        std::ofstream(path) << "# " << support::render(written.diagnostics());
    } catch (const std::exception& e) {
      std::ofstream(path) << "# the program does not print: " << e.what() << "\n";
    }
  }

  fs::path path_;
  uint64_t left_ = reproducer_limit;
  std::map<std::string, std::string> stands_for_;
};

}  // namespace

std::string leave_reproducer(const Reproducer& r) {
  std::string sentence = "internal failure";
  if (!r.stage.empty()) sentence += " after " + r.stage;
  sentence += ": " + r.what.substr(0, r.what.find('\n')) + "\n";
  const auto path = make_folder();
  if (!path) return sentence;
  Folder folder(*path);
  folder.put_model(r);
  for (const ReproducerFile& file : r.files) folder.put(file);
  std::string command = "lathe";
  for (const std::string& argument : r.arguments) command += " " + quoted(folder.filled_in(argument));
  std::ofstream(*path / "command.txt") << command << "\n";
  std::ofstream(*path / "failure.txt") << "after: " << r.stage << "\n" << r.what << "\n";
  return sentence + "rerun it with: " + command + "   (what is needed lies in " + path->string() + ")\n";
}

std::string file_argument(Reproducer& r, const std::string& path) {
  std::error_code absent;
  if (!fs::is_regular_file(path, absent)) return path;
  const std::string name = fmt::format("{}-{}", r.files.size(), fs::path(path).filename().string());
  r.files.push_back({.name = name, .path = path, .write = {}});
  return "{" + name + "}";
}

void append_options(const CompileWords& given, Reproducer& reproducer) {
  const auto add = [&](const char* name, const std::vector<std::string>& values) {
    for (const std::string& value : values) reproducer.arguments.insert(reproducer.arguments.end(), {name, value});
  };
  add("--target", {file_argument(reproducer, given.target)});
  add("--dim", given.dims);
  add("--disable-pass", given.disabled);
  add("--decide", given.decisions);
  if (given.winograd) reproducer.arguments.push_back("--winograd");
  add("--state", given.states);
}

void watched(const Reproducer& reproducer, support::function_ref<void()> step) {
  const auto copy = [&] { return reproducer; };
  const CrashWatch watch(copy);
  step();
}

}  // namespace lathe::driver
