#include "ir/pass.h"

#include "ir/codes.h"

namespace lathe::ir {
namespace {

// Rows whose declared predecessors come later: a mistake in the pipeline's table.
void check_order(const std::vector<PassRow>& rows) {
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = i + 1; j < rows.size(); ++j)
      for (const std::string& earlier : rows[i].after)
        support::require(rows[j].name != earlier, "the row '" + rows[i].name + "' must come after '" + earlier + "'");
}

}  // namespace

support::Result<IRModule> run_passes(IRModule module, const std::vector<PassRow>& rows, const PassContext& context,
                                     const Verifier& verifier, size_t first) {
  check_order(rows);
  RowsRun rows_run, idle;  // those that ran, and those of them that left every function as it was
  RowsRun watched;         // those that a later one cleans up behind
  for (const PassRow& row : rows) watched.insert(row.behind.begin(), row.behind.end());
  const auto verify = [&](const std::string& when) {
    if (!context.verify || !verifier) return;
    const support::Diagnostics found = verifier(module, rows_run);
    if (!found.empty()) throw support::InternalError(when + ": " + support::render(found));
  };
  for (size_t i = 0; i < first; ++i)
    if (!context.disabled.count(rows[i].name)) rows_run.insert(rows[i].name);
  verify("before the first row");
  int number = static_cast<int>(first);
  for (const PassRow& row : std::span(rows).subspan(first)) {
    ++number;
    if (context.disabled.count(row.name)) {
      if (row.name == context.stop_after) break;
      continue;
    }
    if (context.cancelled && context.cancelled())
      return support::Diagnostic{.code = codes::cancelled, .message = "stopped by the user before " + row.name};
    const bool has_work = row.behind.empty() || std::any_of(row.behind.begin(), row.behind.end(),
                                                            [&](const std::string& r) { return !idle.count(r); });
    if (has_work) {
      const auto start = std::chrono::steady_clock::now();
      // Who holds on to a function keeps its pass from updating it in place.
      const auto before = watched.count(row.name) ? std::optional(module) : std::nullopt;
      std::optional<support::Hash128> hash;
      if (context.on_change) hash = structural_hash(module);
      module = TRY(row.run(std::move(module), context));
      if (context.on_time) context.on_time(row.name, std::chrono::steady_clock::now() - start);
      if (before && same_functions(*before, module)) idle.insert(row.name);
      if (context.on_change && structural_hash(module) != hash) context.on_change(number, row.name, module);
    } else {
      idle.insert(row.name);
    }
    rows_run.insert(row.name);
    if (has_work) verify("after " + row.name);
    if (row.name == context.stop_after) break;
  }
  return module;
}

}  // namespace lathe::ir
