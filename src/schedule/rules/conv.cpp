// conv: direct convolution as a product of matrices over the taps of the window. Vectors run along output channels
// (weights packed "OHWI{n}o"), rows along the output's last axis; padding is a block of its own before it.
#include "schedule/rules/contraction.h"

namespace lathe::schedule {

Result<Outcome> conv(Schedule& schedule, const RuleContext& context) {
  return schedule_contraction(schedule, context, "conv", true);
}

}  // namespace lathe::schedule
