#include "script/testing/expected_text.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "script/parse.h"
#include "script/print.h"
#include "support/environment.h"

namespace lathe::script::testing {
namespace {

constexpr std::string_view case_line = "# case: ";
constexpr std::string_view becomes_line = "# becomes:";

support::Diagnostic malformed(size_t line, std::string message) {
  return {.code = {"text-test"}, .message = fmt::format("line {}: {}", line, message)};
}

// A program's lines without blank ones at its ends, ending in a line break.
std::string trimmed(std::string_view text) {
  while (text.starts_with("\n")) text.remove_prefix(1);
  while (text.ends_with("\n")) text.remove_suffix(1);
  return text.empty() ? std::string() : std::string(text) + "\n";
}

// A script from its first decorator on: what comes before is the same in each.
std::string without_preamble(const std::string& text) { return trimmed(std::string_view(text).substr(text.find('@'))); }

std::string refused(const support::Diagnostics& diagnostics) {
  std::string text;
  for (const support::Diagnostic& d : diagnostics) text += fmt::format("# refused: {}: {}\n", d.code.name, d.message);
  return text;
}

std::string as_text(const ir::IRModule& module, Dialects dialects) {
  const PrintOptions options;
  if (module.size() != 1) return without_preamble(print(module, options, dialects));
  const auto& [name, function] = *module.begin();
  return without_preamble(print_function(name, function, options, dialects));
}

}  // namespace

support::Result<std::vector<TextCase>> read_cases(std::string_view text) {
  std::vector<TextCase> cases;
  std::string* into = nullptr;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    const std::string_view words = line.ends_with("\n") ? line.substr(0, line.size() - 1) : line;
    text.remove_prefix(end);
    ++number;
    if (words.starts_with(case_line)) {
      cases.push_back({std::string(words.substr(case_line.size())), {}, {}});
      into = &cases.back().given;
    } else if (words == becomes_line) {
      if (!into || into != &cases.back().given) return malformed(number, "'# becomes:' follows a program");
      into = &cases.back().expected;
    } else if (into) {
      *into += line;
    } else if (!words.empty()) {
      return malformed(number, "a file begins with '# case: '");
    }
  }
  if (cases.empty()) return malformed(number, "there are no cases");
  for (TextCase& one : cases) {
    one.given = trimmed(one.given);
    one.expected = trimmed(one.expected);
  }
  return cases;
}

std::string write_cases(const std::vector<TextCase>& cases) {
  std::string text;
  for (const TextCase& one : cases)
    text += fmt::format("{}{}{}\n{}{}\n{}", text.empty() ? "" : "\n", case_line, one.name, one.given, becomes_line,
                        one.expected);
  return text;
}

support::Result<std::string> text_after(const ir::Pass& pass, const ir::PassContext& context, std::string_view given,
                                        Dialects dialects) {
  ir::IRModule module = TRY(parse({"<case>", std::string(given)}, dialects));
  const support::Result<ir::IRModule> after = pass(std::move(module), context);
  return after.ok() ? as_text(*after, dialects) : refused(after.diagnostics());
}

std::string check_cases(const ir::Pass& pass, const ir::PassContext& context, const char* test, Dialects dialects) {
  const std::filesystem::path file = std::filesystem::path(test).replace_extension(".txt");
  std::stringstream content;
  content << std::ifstream(file).rdbuf();
  support::Result<std::vector<TextCase>> cases = read_cases(content.str());
  if (!cases.ok()) return fmt::format("{}: {}", file.string(), support::render(cases.diagnostics()));
  std::string problems;
  for (TextCase& one : *cases) {
    const auto after = text_after(pass, context, one.given, dialects);
    if (!after.ok())
      problems += fmt::format("{}, case {}: {}\n", file.string(), one.name, support::render(after.diagnostics()));
    else if (*after != one.expected)
      problems += fmt::format("{}, case {} becomes\n{}instead of\n{}", file.string(), one.name, *after, one.expected);
    if (after.ok()) one.expected = *after;
  }
  if (problems.empty()) return {};
  if (support::read_environment().update_expected != "1")
    return problems + "where that is right, ./dev update-expected rewrites the file, for review with git diff\n";
  std::ofstream(file) << write_cases(*cases);
  return {};
}

}  // namespace lathe::script::testing
