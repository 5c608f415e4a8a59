#include <unistd.h>

#include <charconv>

#include "codes.h"
#include "command.h"
#include "driver/report/winograd_summary.h"

namespace lathe::tool {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::option, .message = std::move(message)});
}

bool (*interrupted_by_caller)() = nullptr;

}  // namespace

void set_interrupted(bool (*interrupted)()) { interrupted_by_caller = interrupted; }
bool is_interrupted() { return interrupted_by_caller && interrupted_by_caller(); }

std::pair<std::string, std::string> split_pair(const std::string& option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse(option + " takes name=value, not '" + text + "'");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

relax::DimSizesByName parse_dims(const std::vector<std::string>& options) {
  relax::DimSizesByName dims;
  for (const std::string& pair : options) {
    const auto [name, text] = split_pair("--dim", pair);
    dims[name] = relax::parse_dim_sizes(name, text).value_or_throw();
  }
  return dims;
}

std::map<std::string, int64_t> parse_decisions(const std::vector<std::string>& options) {
  std::map<std::string, int64_t> decisions;
  for (const std::string& pair : options) {
    const auto [name, text] = split_pair("--decide", pair);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
      refuse("--decide " + name + " takes a number of zero or more, not '" + text + "'");
    decisions[name] = value;
  }
  return decisions;
}

void print_winograd(const driver::CompiledModel& model) {
  const std::string summary = driver::winograd_summary(model.module);
  if (!summary.empty()) std::fprintf(stderr, "%s\n", summary.c_str());
}

Progress::Progress(bool quiet) : start_(std::chrono::steady_clock::now()), enabled_(!quiet && isatty(STDERR_FILENO)) {}

void Progress::operator()(const std::string& stage, double fraction) {
  if (!enabled_ || std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
  std::fprintf(stderr, "\r\033[K%3d %% %s", static_cast<int>(std::min(fraction, 1.0) * 100), stage.c_str());
  shown_ = true;
}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

}  // namespace lathe::tool
