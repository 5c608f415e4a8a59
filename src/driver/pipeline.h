// The pipeline: all rows in order, on one page (pipeline.cpp).
#pragma once

#include <map>
#include <set>

#include "ir/pass.h"
#include "target/target.h"
#include "tir/stmt.h"

namespace lathe::driver {

// The user's answers to questions of the schedule rules, by "rule.name" or "function:rule.name".
using Decisions = std::map<std::string, int64_t>;

// A schedule may cost speed, never the model: where a rule's program does not lower to a kernel, the next rule is
// asked, and if none's does, the function keeps its program as it was. Either each program is lowered on trial, or all
// are believed, and a later row fails where one does not lower.
enum class Schedules : uint8_t { tried, believed };

// Schedules by rules whose questions the user answers, else the analytic model.
ir::Pass default_schedule(const target::Target& target, const Decisions& decisions, Schedules schedules);

// What passes read of the options by name (ir::PassContext::config).
ir::Attributes pass_config(const Decisions& decisions, bool winograd);

// The rows for a target: from relax as imported to kernel tir.
std::vector<ir::PassRow> pipeline(const target::Target& target, const Decisions& decisions = {},
                                  Schedules schedules = Schedules::tried);

// Its last part: the rows that make kernels of scheduled tensor functions.
std::vector<ir::PassRow> kernel_rows();
// Passes over tensor programs that are in no pipeline of the compiler's own.
std::vector<ir::PassRow> library_rows();
// Runs them on one function, but for those that are switched off.
support::Result<tir::Function> lower_to_kernel(const tir::Function& function,
                                               const std::set<std::string>& disabled = {});

// The stage that a row belongs to, for people: "graph", "tensor programs", "kernels", "code".
std::string_view stage_of(std::string_view row);

}  // namespace lathe::driver
