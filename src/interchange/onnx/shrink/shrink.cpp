#include "interchange/onnx/shrink/shrink.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/import.h"
#include "interchange/onnx/read/model.h"
#include "interchange/onnx/shrink/edit.h"
#include "interchange/onnx/types.h"
#include "onnx_schema.pb.h"
#include "relax/expr.h"

namespace lathe::onnx {
namespace {

using schema::ModelProto;
using support::Result;

// The payloads of initializers as raw data in the model itself: one form to edit.
Result<ModelProto> with_raw_payloads(const std::string& content, const ShrinkOptions& options) {
  ModelProto proto;
  const Model outline =
      TRY(read_model({content, std::make_shared<const std::string>(content)}, options.name, options.folder));
  if (!proto.ParseFromString(content))
    return support::Diagnostic{
        .code = codes::damaged, .place = outline.place(), .message = "the file is too large to be edited, or no model"};
  for (int i = 0; i < proto.graph().initializer_size(); ++i) {
    auto& tensor = *proto.mutable_graph()->mutable_initializer(i);
    const ir::TensorData data = TRY(read_tensor(outline, outline.proto->graph().initializer(i),
                                                "the initializer " + tensor.name(), outline.place()));
    schema::TensorProto raw;
    raw.set_name(tensor.name());
    raw.set_data_type(tensor.data_type());
    for (const int64_t extent : tensor.dims()) raw.add_dims(extent);
    raw.set_raw_data(std::string(data->view()));
    tensor = raw;
  }
  return proto;
}

class ShrinkSearch {
 public:
  ShrinkSearch(ModelProto model, const std::function<bool(const std::string&)>& holds, const ShrinkOptions& options)
      : best_(std::move(model)), holds_(holds), options_(options) {
    imports_ = import(best_.SerializeAsString()).ok();
  }

  ModelProto run() {
    attempt("what no output needs is left out", [](ModelProto&) { return true; });
    for (bool shrunk = true; shrunk && attempts_ < options_.most_attempts;) {
      shrunk = outputs();
      shrunk |= nodes();
      shrunk |= bypasses();
      shrunk |= attributes();
      shrunk |= extents();
      shrunk |= values();
    }
    return std::move(best_);
  }

 private:
  Result<ir::IRModule> import(std::string content) const {
    return support::catch_diagnostics([&] {
      return import_onnx(
          ModelBytes{std::make_shared<const std::string>(std::move(content)), options_.name, options_.folder});
    });
  }

  template <class Edit>
  bool attempt(const std::string& what, Edit&& edit) {
    if (attempts_ >= options_.most_attempts) return false;
    ModelProto candidate = best_;
    if (!edit(candidate)) return false;
    shrink::prune(candidate);
    std::string content = candidate.SerializeAsString();
    if (candidate.graph().node_size() == 0 || !tried_.insert(support::hash_bytes(content)).second) return false;
    if (imports_ && !import(content).ok()) return false;
    ++attempts_;
    if (!holds_(content)) return false;
    best_ = std::move(candidate);
    types_.reset();
    if (options_.on_progress) options_.on_progress(what, best_.graph().node_size());
    return true;
  }

  // The types of all tensors, as the importer infers them; none where it refuses.
  const shrink::Types& types() {
    if (types_) return *types_;
    types_.emplace();
    for (const auto& input : best_.graph().input()) (*types_)[input.name()] = input.type();
    const ModelProto every = shrink::with_every_output(best_);
    const Result<ir::IRModule> module = import(every.SerializeAsString());
    const auto main = module.ok() ? module->find_as<relax::FunctionNode>("main") : relax::Function();
    if (!main) return *types_;
    const relax::StructInfo result = main->ret_struct_info ? main->ret_struct_info : main->body->struct_info;
    const auto* tuple = result.as<relax::TupleStructInfo>();
    for (int i = 0; i < every.graph().output_size(); ++i) {
      const relax::StructInfo& one = tuple ? tuple->items.at(static_cast<size_t>(i)) : result;
      const auto* tensor = one.as<relax::TensorStructInfo>();
      if (tensor && tensor->shape) (*types_)[every.graph().output(i).name()] = type_of(one).value();
    }
    return *types_;
  }

  // Runs of `count()` things left out, of half of them down to one, from the end.
  template <class Count, class Edit>
  bool runs(const std::string& what, Count&& count, Edit&& edit) {
    bool shrunk = false;
    for (int size = std::max(1, count() / 2); size > 0; size /= 2)
      for (int end = count(); end > 0; end -= size) {
        end = std::min(end, count());
        const int begin = std::max(0, end - size);
        if (begin < end) shrunk |= attempt(what, [&](ModelProto& model) { return edit(model, begin, end); });
      }
    return shrunk;
  }

  bool outputs() {
    return runs("an output less", [&] { return best_.graph().output_size(); }, shrink::drop_outputs);
  }

  bool nodes() {
    return runs(
        "nodes left out", [&] { return best_.graph().node_size(); },
        [&](ModelProto& model, int begin, int end) { return shrink::leave_out(model, begin, end, types()); });
  }

  bool bypasses() {
    bool shrunk = false;
    for (int node = best_.graph().node_size(); node-- > 0;)
      for (int input = 0; node < best_.graph().node_size() && input < best_.graph().node(node).input_size(); ++input)
        if (best_.graph().node(node).output_size() > 0)
          shrunk |= attempt("a node replaced by its input",
                            [&](ModelProto& model) { return shrink::bypass(model, node, input, types()); });
    return shrunk;
  }

  bool attributes() {
    bool shrunk = false;
    for (int node = 0; node < best_.graph().node_size(); ++node)
      for (int i = best_.graph().node(node).attribute_size(); i-- > 0;)
        shrunk |=
            attempt("an attribute less", [&](ModelProto& model) { return shrink::drop_attribute(model, node, i); });
    return shrunk;
  }

  bool extents() {
    bool shrunk = false;
    for (const std::string& name : shrink::symbols_of(best_))
      for (const int64_t extent : {3, 1})
        if (attempt("a symbol fixed", [&](ModelProto& model) { return shrink::fix_symbol(model, name, extent); })) {
          shrunk = true;
          break;
        }
    for (const int64_t extent : shrink::extents_of(best_))
      for (const int64_t smaller : {int64_t{1}, int64_t{2}, extent / 2, extent - 1})
        if (smaller > 0 && smaller < extent &&
            attempt(
                "a smaller dimension",
                [&](ModelProto& model) { return shrink::shrink_extent(model, extent, smaller); })) {
          shrunk = true;
          break;
        }
    return shrunk;
  }

  bool values() {
    bool shrunk = false;
    for (int i = 0; i < best_.graph().initializer_size(); ++i)
      shrunk |= attempt("an initializer of ones", [&](ModelProto& model) { return shrink::make_ones(model, i); });
    return shrunk;
  }

  ModelProto best_;
  const std::function<bool(const std::string&)>& holds_;
  const ShrinkOptions& options_;
  bool imports_ = false;
  int attempts_ = 0;
  std::optional<shrink::Types> types_;
  std::set<support::Hash128> tried_;
};

}  // namespace

Result<std::string> shrink_model(std::string content, const std::function<bool(const std::string&)>& holds,
                                 const ShrinkOptions& options) {
  return support::catch_diagnostics([&]() -> Result<std::string> {
    const ModelProto model = TRY(with_raw_payloads(content, options));
    return ShrinkSearch(model, holds, options).run().SerializeAsString();
  });
}

}  // namespace lathe::onnx
