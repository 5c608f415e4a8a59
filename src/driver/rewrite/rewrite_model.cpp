#include "driver/rewrite/rewrite_model.h"

#include "driver/codes.h"
#include "driver/evaluate.h"
#include "driver/interpreted.h"
#include "driver/model_file.h"
#include "driver/rewrite/node_passes.h"
#include "driver/verify/tensors.h"
#include "driver/verify/trials.h"
#include "driver/verify_module.h"
#include "interchange/onnx/nodes/import_nodes.h"
#include "interchange/onnx/nodes/write_model.h"
#include "interchange/onnx/read/external_files.h"
#include "ir/visit.h"
#include "support/temporary_folder.h"

namespace lathe::driver {

namespace {

using ir::IRModule;
using support::Result;
using support::Status;
namespace fs = std::filesystem;

constexpr int64_t largest_inside = 1 << 30;  // bytes of weights: more go into a file beside the model

Result<std::vector<ir::PassRow>> chosen_rows(const std::vector<std::string>& names) {
  const std::vector<ir::PassRow> all = node_pipeline();
  std::vector<ir::PassRow> rows;
  for (const std::string& name : names) {
    const auto row = std::find_if(all.begin(), all.end(), [&](const ir::PassRow& r) { return r.name == name; });
    if (row == all.end()) {
      std::vector<std::string> known;
      for (const ir::PassRow& r : all) known.push_back(r.name);
      return support::Diagnostic{.code = codes::unknown_pass,
                                 .message = "there is no pass '" + name + "' over the nodes of a model",
                                 .help = fmt::format("there are {}", fmt::join(known, ", "))};
    }
    rows.push_back(*row);
  }
  return rows;
}

support::Diagnostic cannot_write(const fs::path& path) {
  return {.code = codes::cannot_write, .message = "'" + path.string() + "' cannot be written"};
}

class RewriteModel {
 public:
  RewriteModel(const std::string& from, const std::string& to, const RewriteOptions& options)
      : from_(from), to_(to), options_(options) {}

  Result<RewriteReport> run() {
    const std::vector<ir::PassRow> rows = TRY(chosen_rows(options_.passes));
    IRModule module = TRY(onnx::import_nodes(from_, {options_.dims}));
    report_.before = size_of(module);
    const bool is_part = !options_.inputs.empty() || !options_.outputs.empty();
    if (is_part) module = TRY(extract_nodes(std::move(module), options_.inputs, options_.outputs));
    const IRModule before = module;
    ir::PassContext context;
    context.verify = options_.compile.verify;
    context.cancelled = options_.compile.cancelled;
    context.evaluate = node_evaluator(native_evaluator(options_.compile));
    context.on_remark = [&](ir::Remark remark) { report_.remarks.push_back(std::move(remark)); };
    module = TRY(ir::run_passes(std::move(module), rows, context, verify_module));
    if (options_.weight_levels > 0) module = round_weights(std::move(module), options_.weight_levels);

    const fs::path folder = to_.has_parent_path() ? to_.parent_path() : fs::path(".");
    const support::TemporaryFolder temporary(folder / ".lathe-opt");
    if (temporary.path().empty()) return cannot_write(to_);
    const std::vector<fs::path> files = TRY(write(module, temporary.path()));
    if (options_.check) {
      Status checked = check(is_part ? std::optional(before) : std::nullopt, temporary.path() / to_.filename());
      if (!checked.ok()) return std::move(checked).failure();
    }
    for (const fs::path& file : files) {
      std::error_code error;
      fs::rename(file, folder / file.filename(), error);
      if (error) return cannot_write(folder / file.filename());
    }
    return std::move(report_);
  }

 private:
  static uint64_t bytes_of(const fs::path& file) {
    std::error_code error;
    const uint64_t size = fs::file_size(file, error);
    return error ? 0 : size;
  }

  RewriteReport::Size size_of(const IRModule& module) const {
    RewriteReport::Size size;
    size.nodes = module.find("main")->attrs.get_or<int64_t>(onnx::nodes_attribute, 0);
    size.bytes = bytes_of(from_);
    for (const std::string& file : onnx::external_files(from_))
      size.bytes += bytes_of(fs::path(from_).parent_path() / file);
    return size;
  }

  static int64_t constant_bytes(const IRModule& module) {
    std::unordered_map<const ir::Node*, int64_t> sizes;
    ir::pre_order(module.find("main"), [&](const ir::NodeRef& n) {
      if (const auto* constant = n.as<relax::Constant>()) sizes[constant->data.get()] = constant->data->byte_size();
      return true;
    });
    int64_t total = 0;
    for (const auto& [data, bytes] : sizes) total += bytes;
    return total;
  }

  // The files, the model last: it is the one that others look for.
  Result<std::vector<fs::path>> write(const IRModule& module, const fs::path& folder) {
    onnx::WriteOptions how;
    how.renames = options_.renames;
    if (options_.data_file || constant_bytes(module) > largest_inside)
      how.data_file = to_.filename().string() + ".data";
    const onnx::WrittenModel written = TRY(onnx::write_onnx(module, how));
    std::vector<fs::path> files;
    if (!written.data.empty()) {
      files.push_back(folder / how.data_file);
      std::ofstream data(files.back(), std::ios::binary);
      uint64_t end = 0;
      for (const auto& [offset, tensor] : written.data) {
        data << std::string(offset - end, '\0') << tensor->view();
        end = offset + tensor->view().size();
      }
      if (!data.flush()) return cannot_write(files.back());
    }
    files.push_back(folder / to_.filename());
    std::ofstream model(files.back(), std::ios::binary);
    model << written.model;
    if (!model.flush()) return cannot_write(files.back());
    report_.after.nodes = written.nodes;
    for (const fs::path& file : files) report_.after.bytes += bytes_of(file);
    return files;
  }

  // Both models on the same random inputs. `before`: what stands for the first where a part of it was taken.
  Status check(const std::optional<IRModule>& before, const fs::path& written) {
    IRModule first;
    if (before) {
      onnx::WrittenModel part = TRY(onnx::write_onnx(*before));
      first = TRY(read_model_bytes(std::move(part.model), from_));
    } else {
      first = TRY(read_model(from_, {options_.dims}));
    }
    const IRModule second = TRY(read_model(written.string(), {}));
    const Signature signature = signature_of(first);
    const ExecutableRef one = TRY(load(TRY(compile(first, options_.compile))));
    const ExecutableRef other = TRY(load(TRY(compile(second, options_.compile))));
    const std::vector<Dims> trials = trials_of(first);
    for (size_t t = 0; t < trials.size(); ++t) {
      const auto inputs = random_inputs(signature, trials[t], options_.seed + 1000 * t);
      if (!inputs.ok()) {
        report_.unchecked = inputs.diagnostics()[0].message;
        return support::success();
      }
      const auto expected = one->run(*inputs, {.limits = options_.limits});
      if (!expected.ok()) {  // not every choice of sizes is a legal one
        report_.unchecked = expected.diagnostics()[0].message;
        continue;
      }
      const auto got = TRY(other->run(taken(*inputs, signature, signature_of(second)), {.limits = options_.limits}));
      TRY(compare_outputs(got, *expected, signature));
      ++report_.trials;
    }
    if (report_.trials > 0) report_.unchecked.clear();
    return support::success();
  }

  // Those that the new model takes: it may need fewer, under other names.
  std::vector<ir::TensorData> taken(const std::vector<ir::TensorData>& inputs, const Signature& first,
                                    const Signature& second) const {
    std::vector<ir::TensorData> left;
    for (const relax::Var& wanted : second.inputs)
      for (size_t i = 0; i < first.inputs.size(); ++i) {
        const auto it = options_.renames.find(first.inputs[i]->name);
        if ((it == options_.renames.end() ? first.inputs[i]->name : it->second) == wanted->name)
          left.push_back(inputs[i]);
      }
    return left;
  }

  Status compare_outputs(const std::vector<ir::TensorData>& got, const std::vector<ir::TensorData>& expected,
                         const Signature& signature) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const Difference difference = compare(*got.at(i), *expected[i]);
      if (difference.compared > 0) report_.largest_error = std::max(report_.largest_error, difference.relative());
      const bool may_differ = options_.weight_levels > 0 && difference.complaint.empty();
      if (difference.agrees() || may_differ) continue;
      return support::Diagnostic{
          .code = codes::rewritten_differs,
          .message = fmt::format(
              "the output '{}' of the model that would be written differs from the first's: {}",
              signature.output_names[i],
              difference.complaint.empty()
                  ? fmt::format("{} of {} elements, by up to {:.3g} where the largest is {:.3g}", difference.wrong,
                                difference.compared, difference.largest_error, difference.largest_value)
                  : difference.complaint),
          .help = "nothing was written; `--passes` one by one tells which it is"};
    }
    return support::success();
  }

  const std::string& from_;
  const fs::path to_;
  const RewriteOptions& options_;
  RewriteReport report_;
};

}  // namespace

Result<RewriteReport> rewrite_model(const std::string& from, const std::string& to, const RewriteOptions& options) {
  return support::catch_diagnostics([&] { return RewriteModel(from, to, options).run(); });
}

}  // namespace lathe::driver
