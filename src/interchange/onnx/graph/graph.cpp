#include "interchange/onnx/graph/graph.h"

#include "interchange/onnx/graph/graph_import.h"
#include "interchange/onnx/lengths.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using support::Diagnostics;
using support::Result;

namespace {

// A graph is converted again for each length that an input may have only where that takes no time to speak of.
constexpr int64_t most_tried_conversions = 5'000;

// `options` become those with which the graph is converted.
Result<ir::IRModule> convert(const Model& model, ImportOptions& options) {
  GraphImport import(model, options, {});
  Result<ir::IRModule> module = support::catch_diagnostics([&] { return import.run(); });
  if (module.ok() || import.converted() > most_tried_conversions) return module;
  Diagnostics refused = module.diagnostics();
  auto deduced = deduce_length(model.proto->graph(), options, refused,
                               [&](const ImportOptions& tried) { return GraphImport(model, tried, {}).fits(); });
  if (!deduced) return refused;
  options = std::move(*deduced);
  return GraphImport(model, options, {}).run();
}

}  // namespace

Result<ir::IRModule> import_graph(const Model& model, const ImportOptions& options, const SeeNode& see) {
  return support::catch_diagnostics([&]() -> Result<ir::IRModule> {
    ImportOptions settled = options;
    ir::IRModule module = TRY(convert(model, settled));
    return see ? GraphImport(model, settled, see).run() : std::move(module);
  });
}

}  // namespace lathe::onnx
