// gemm: sums of products without windows. A tile of rows by vectors stays in registers over the whole reduction; the
// weights (packed or plain) are read in vectors, the other tensor element by element.
#include "schedule/rules/contraction.h"

namespace lathe::schedule {

Result<Outcome> gemm(Schedule& schedule, const RuleContext& context) {
  return schedule_contraction(schedule, context, "gemm", false);
}

}  // namespace lathe::schedule
