#include "driver/artifact/metadata.h"

#include "driver/report/winograd_summary.h"
#include "support/version.h"

namespace lathe::driver {

Metadata metadata_of(const CompiledModel& model) {
  Metadata metadata;
  metadata["builder"] = "lathe";
  metadata["version"] = support::version;
  metadata["target"] = model.target.str();
  metadata["architecture"] = model.target.triple.substr(0, model.target.triple.find('-'));
  std::string features;
  for (const std::string& feature : model.target.features) features += (features.empty() ? "" : ",") + feature;
  metadata["cpu_features"] = features;
  if (model.program) {
    metadata["arena_bytes"] = std::to_string(model.program->plan.arena_bytes);
    metadata["weight_bytes"] = std::to_string(model.program->weight_bytes);
  }
  const std::string winograd = winograd_summary(model.module);
  if (!winograd.empty()) metadata["winograd"] = winograd;
  return metadata;
}

}  // namespace lathe::driver
