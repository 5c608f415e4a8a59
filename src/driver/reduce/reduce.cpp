#include "driver/reduce/reduce.h"

#include "driver/codes.h"
#include "driver/model_file.h"
#include "driver/reduce/shrink_script.h"
#include "interchange/onnx/shrink/shrink.h"
#include "ir/codes.h"
#include "support/temporary_folder.h"

namespace lathe::driver {
namespace {

namespace fs = std::filesystem;
using support::Diagnostic;
using support::Result;

Result<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code failure;
  if (!file || fs::is_directory(path, failure))
    return Diagnostic{.code = codes::reduce_no_file, .message = "'" + path + "' cannot be read"};
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::string in_shell_quotes(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string command_for(const std::string& command, const std::string& path) {
  const std::string file = in_shell_quotes(path);
  std::string line = command;
  size_t at = line.find("{model}");
  if (at == std::string::npos) return command + " " + file;
  for (; at != std::string::npos; at = line.find("{model}", at + file.size())) line.replace(at, 7, file);
  return line;
}

// The candidates of one reduction: each is written, tried, and kept beside the output while it fails as the whole did.
class Reduction {
 public:
  Reduction(const std::string& path, const ReduceOptions& options) : path_(path), options_(options) {
    candidate_ = folder_.path() / fs::path(path).filename();
  }

  Result<Reduced> run() {
    if (folder_.path().empty())
      return Diagnostic{.code = codes::cannot_write, .message = "there is no folder for temporary files"};
    const std::string content = TRY(content_of(path_));
    const bool script = is_script(path_);
    if (std::error_code absent; script && fs::exists(path_ + ".constants", absent))
      fs::copy_file(path_ + ".constants", candidate_.string() + ".constants", absent);
    // The whole in its own place: its external data lies beside it.
    whole_ = run_shell(command_for(options_.command, path_), options_.timeout);
    gist_ = options_.saying.empty() ? gist_of(whole_.said) : options_.saying;
    if (whole_.code == 0 || (!options_.saying.empty() && whole_.said.find(options_.saying) == std::string::npos))
      return Diagnostic{.code = codes::reduce_no_failure,
                        .message = whole_.code == 0 ? "the command succeeds on '" + path_ + "' as it is"
                                                    : "the command does not say '" + options_.saying + "' of '" +
                                                          path_ + "' as it is",
                        .help = "the command must fail on the file, and go on failing on what is left of it"};
    made_.failure = fmt::format("{}{}", whole_.timed_out ? "no end in time" : fmt::format("exit code {}", whole_.code),
                                gist_.empty() ? "" : ": " + gist_);
    made_.before = fmt::format("{} bytes", content.size());
    const std::string small = script ? shrunk_script(content) : TRY(shrunk_model(content));
    if (failure_) return *failure_;
    made_.after = fmt::format("{} bytes", small.size()) + (left_.empty() ? "" : ", " + left_);
    if (made_.kept == 0) TRY(keep(small));
    return std::move(made_);
  }

 private:
  std::string shrunk_script(const std::string& content) {
    const bool reads = read_model(path_).ok();
    const auto holds = [&](const std::string& text) {
      if (failure_ || !write(candidate_.string(), text)) return false;
      return (!reads || read_model(candidate_.string()).ok()) && still_fails(text);
    };
    ShrinkScriptOptions options{.most_attempts = std::numeric_limits<int>::max()};
    options.on_progress = [&](const std::string& what, int lines) { report(what, fmt::format("{} lines", lines)); };
    return shrink_script(content, holds, options);
  }

  Result<std::string> shrunk_model(const std::string& content) {
    const auto holds = [&](const std::string& bytes) {
      return !failure_ && write(candidate_.string(), bytes) && still_fails(bytes);
    };
    onnx::ShrinkOptions options{.name = fs::path(path_).filename().string(),
                                .folder = fs::path(path_).parent_path().string(),
                                .most_attempts = options_.most_attempts};
    if (options.folder.empty()) options.folder = ".";
    options.on_progress = [&](const std::string& what, int nodes) { report(what, fmt::format("{} nodes", nodes)); };
    return onnx::shrink_model(content, holds, options);
  }

  bool still_fails(const std::string& content) {
    if (options_.cancelled && options_.cancelled())
      failure_ = Diagnostic{.code = ir::codes::cancelled, .message = "stopped by the user"};
    if (failure_ || made_.attempts >= options_.most_attempts) return false;
    ++made_.attempts;
    const CommandOutcome now = run_shell(command_for(options_.command, candidate_.string()), options_.timeout);
    if (now.code != whole_.code || now.timed_out != whole_.timed_out) return false;
    const bool same = options_.saying.empty() ? gist_of(now.said) == gist_ : now.said.find(gist_) != std::string::npos;
    if (!same) return false;
    ++made_.kept;
    if (const support::Status kept = keep(content); !kept.ok()) failure_ = kept.diagnostics()[0];
    return true;
  }

  support::Status keep(const std::string& content) {
    std::error_code failure;
    if (const fs::path constants = candidate_.string() + ".constants"; fs::exists(constants, failure))
      fs::copy_file(constants, options_.output + ".constants", fs::copy_options::overwrite_existing, failure);
    if (write(options_.output, content)) return support::success();
    return Diagnostic{.code = codes::cannot_write, .message = "'" + options_.output + "' cannot be written"};
  }

  static bool write(const std::string& path, const std::string& content) {
    std::ofstream file(path, std::ios::binary);
    file << content;
    return static_cast<bool>(file.flush());
  }

  void report(const std::string& what, const std::string& left) {
    left_ = left;
    if (options_.on_progress) options_.on_progress(fmt::format("{}: {} left", what, left));
  }

  const std::string& path_;
  const ReduceOptions& options_;
  const support::TemporaryFolder folder_ = support::TemporaryFolder::of_the_system("reduce");
  fs::path candidate_;
  CommandOutcome whole_;
  std::string gist_, left_;
  std::optional<Diagnostic> failure_;
  Reduced made_;
};

}  // namespace

std::string gist_of(const std::string& said) {
  const size_t begin = std::min(said.find_first_not_of(" \n\r\t"), said.size());
  const std::string line = said.substr(begin, std::min<size_t>(said.find('\n', begin) - begin, 400));
  std::string gist;
  for (size_t at = 0; at < line.size();) {
    const size_t closing = line[at] == '\'' ? line.find('\'', at + 1) : std::string::npos;
    if (closing != std::string::npos) {
      gist += "'…'";
      at = closing + 1;
    } else if (line[at] == '/' || (line[at] >= '0' && line[at] <= '9')) {
      const bool path = line[at] == '/';
      while (at < line.size() && line[at] != ' ' && line[at] != ':' && line[at] != ',' && (path || line[at] != ']'))
        ++at;
      gist += '#';
    } else {
      gist += line[at++];
    }
  }
  return gist;
}

Result<Reduced> reduce(const std::string& path, const ReduceOptions& options) {
  return support::catch_diagnostics([&] { return Reduction(path, options).run(); });
}

}  // namespace lathe::driver
