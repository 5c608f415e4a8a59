// From tensor expressions to a tensor program: one loop nest and block a computed tensor, producers first.
#include "ir/visit.h"
#include "support/mutation.h"
#include "te/codes.h"
#include "te/tensor.h"
#include "tir/analysis/regions.h"
#include "tir/analysis/zero_border.h"

namespace lathe::te {

LATHE_FAULT(te_dropped_init, "te_test ops_test", "create_prim_func: a reduction block without its init");

using ir::Buffer;
using ir::NodeRef;
using tir::Stmt;

namespace {

// Replaces variables, and buffers that got another name.
class Rename : public ir::Rewriter {
 public:
  std::unordered_map<const ir::Node*, NodeRef> map;

 protected:
  NodeRef visit(NodeRef node) override {
    if (const auto it = map.find(node.get()); it != map.end()) return it->second;
    if (node.as<ir::BufferNode>()) return node;
    return descend(std::move(node));
  }
};

class Names {
 public:
  std::string unique(const std::string& hint) {
    std::string name = hint;
    for (int n = 1; !taken_.insert(name).second; ++n) name = hint + "_" + std::to_string(n);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
};

class Lowering {
 public:
  tir::Function function(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                         std::vector<Var> scalars, ir::Attributes attrs) {
    for (const Tensor& input : inputs) parameters_.push_back(declare(input.buffer));
    for (const Tensor& input : inputs) given_.insert(input.buffer.get());
    std::vector<Stmt> copies;
    for (const Tensor& output : outputs) {
      if (declared(output.buffer)) {  // an input, or an output twice: a copy of its own
        const Tensor copy =
            compute(output.shape(), [&](const auto& i) { return output(i); }, {output}, output.buffer->name + "_copy");
        parameters_.push_back(declare(copy.buffer));
        later_.push_back(copy);
      } else {
        parameters_.push_back(declare(output.buffer));
      }
    }
    for (const Tensor& output : outputs) emit(output);
    for (const Tensor& copy : later_) emit(copy);

    Stmt body = tir::root_block(tir::seq(std::move(statements_)), std::move(allocated_));
    add_scalars(body, scalars);
    return tir::prim_func(std::move(parameters_), std::move(body), std::move(scalars), std::move(attrs));
  }

 private:
  bool declared(const Buffer& buffer) const { return known_.count(buffer.get()) != 0; }

  // The buffer under a name of its own.
  Buffer declare(const Buffer& buffer) {
    known_.insert(buffer.get());
    const std::string name = buffer_names_.unique(buffer->name);
    if (name == buffer->name) return buffer;
    Buffer renamed = ir::with(*buffer, [&](ir::BufferNode& copy) {
      copy.name = name;
      copy.data = ir::var(name, ir::DType::handle());
    });
    rename_.map[buffer.get()] = renamed;
    return renamed;
  }

  void emit(const Tensor& tensor) {
    if (given_.count(tensor.buffer.get())) return;
    if (!tensor.op)
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::not_an_input,
          .message = "'" + tensor.buffer->name + "' is a placeholder that is not among the function's inputs"});
    if (!done_.insert(tensor.op.get()).second) return;
    const OperationNode& op = *tensor.op;
    for (const Tensor& input : op.inputs) emit(input);
    for (const Buffer& buffer : op.outputs)
      if (!declared(buffer)) allocated_.push_back(declare(buffer));
    statements_.push_back(op.extern_body ? extern_statement(op) : block_of(op));
  }

  // An extern body that is made of blocks stands as it is; other statements become one block over whole buffers.
  Stmt extern_statement(const OperationNode& op) {
    bool has_blocks = false;
    ir::pre_order(op.extern_body, [&](const NodeRef& n) {
      has_blocks = has_blocks || n.as<tir::BlockRealize>();
      return !has_blocks;
    });
    Stmt body = rename_(op.extern_body);
    if (has_blocks) return body;
    tir::Regions whole;
    for (const Tensor& input : op.inputs) whole.reads.push_back(rename_(tir::region_of(input.buffer)));
    for (const Buffer& output : op.outputs) whole.writes.push_back(rename_(tir::region_of(output)));
    return realize({}, {}, std::move(whole), op.name, {}, std::move(body));
  }

  // The instance of a block; without regions they are inferred.
  Stmt realize(std::vector<IterVar> iter_vars, std::vector<Expr> values, tir::Regions regions, const std::string& name,
               Stmt init, Stmt body, const ir::Attributes& annotations = {}) {
    auto block = ir::make<tir::Block>(
        std::move(iter_vars), std::vector<Buffer>{}, std::vector<tir::MatchBufferRegion>{}, std::move(regions.reads),
        std::move(regions.writes), block_names_.unique(name), std::move(init), std::move(body), annotations);
    if (block->writes.empty())
      block = ir::with(*block, [](tir::Block& copy) {
        tir::Regions inferred = tir::infer_regions(copy);
        copy.reads = std::move(inferred.reads);
        copy.writes = std::move(inferred.writes);
      });
    return ir::make<tir::BlockRealize>(std::move(values), ir::boolean(true), std::move(block));
  }

  // The loops over `axes` around one block; `build` gives its init (or none) and body for the element at `point`.
  using BuildBody = support::function_ref<std::pair<Stmt, Stmt>(const std::vector<Expr>& point)>;
  Stmt nest(const OperationNode& op, const std::vector<IterVar>& axes, const std::string& name, BuildBody build) {
    std::vector<IterVar> iter_vars;
    std::vector<Var> loops;
    std::vector<Expr> values, point;
    for (const IterVar& axis : axes) {
      const Var inner = ir::var("v_" + axis->var->name), loop = ir::var(axis->var->name);
      rename_.map[axis->var.get()] = inner;
      iter_vars.push_back(ir::make<ir::IterVarNode>(axis->dom, inner, axis->type));
      loops.push_back(loop);
      values.push_back(loop);
      if (axis->type == ir::IterType::spatial) point.push_back(inner);
    }
    auto [init, body] = build(point);
    ir::Attributes annotations = op.attrs;
    tir::rename_zero_border(annotations, op.inputs.empty() ? Buffer() : rename_(op.inputs[0].buffer));
    if (!op.tag.empty()) annotations.set("tag", op.tag);
    Stmt whole = realize(iter_vars, std::move(values), {}, name, std::move(init), std::move(body), annotations);
    for (size_t k = loops.size(); k-- > 0;)
      whole = ir::make<tir::For>(loops[k], iter_vars[k]->dom.min, iter_vars[k]->dom.extent, tir::ForKind::serial,
                                 std::move(whole));
    for (const IterVar& axis : axes) rename_.map.erase(axis->var.get());
    return whole;
  }

  Stmt block_of(const OperationNode& op) {
    std::vector<Buffer> outputs;
    for (const Buffer& output : op.outputs) outputs.push_back(rename_(output));
    if (!op.body[0].as<ir::Reduce>())
      return nest(op, op.axis, op.name, [&](const std::vector<Expr>& point) {
        std::vector<Stmt> stores;
        for (size_t k = 0; k < outputs.size(); ++k)
          stores.push_back(ir::make<tir::BufferStore>(outputs[k], rename_(op.body[k]), point));
        return std::pair(Stmt(), tir::seq(std::move(stores)));
      });

    // An init runs in the first instance of a reduction. Where there may be none, the identity is written before.
    const bool surely_runs = std::all_of(op.reduce_axis.begin(), op.reduce_axis.end(),
                                         [](const IterVar& k) { return ir::as_int(k->dom.extent).value_or(0) > 0; });
    const bool never_runs = std::any_of(op.reduce_axis.begin(), op.reduce_axis.end(),
                                        [](const IterVar& k) { return ir::is_int(k->dom.extent, 0); });
    std::vector<Stmt> parts;
    if (!surely_runs)
      parts.push_back(nest(op, op.axis, never_runs ? op.name : op.name + "_init", [&](const std::vector<Expr>& point) {
        return std::pair(Stmt(), init_of(op, outputs, point));
      }));
    if (!never_runs) {
      std::vector<IterVar> all = op.axis;
      all.insert(all.end(), op.reduce_axis.begin(), op.reduce_axis.end());
      parts.push_back(nest(op, all, op.name, [&](const std::vector<Expr>& point) {
        const bool inits = surely_runs && !support::flip(te_dropped_init);
        return std::pair(inits ? init_of(op, outputs, point) : Stmt(), update_of(op, outputs, point));
      }));
    }
    return tir::seq(std::move(parts));
  }

  Stmt init_of(const OperationNode& op, const std::vector<Buffer>& outputs, const std::vector<Expr>& point) {
    const auto& reduce = *op.body[0].as<ir::Reduce>();
    std::vector<Stmt> stores;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const auto& own = *op.body[k].as<ir::Reduce>();
      const auto which = static_cast<size_t>(own.value_index);
      const Expr& value = reduce.init.empty() ? own.combiner->identity[which] : reduce.init[which];
      stores.push_back(ir::make<tir::BufferStore>(outputs[k], rename_(value), point));
    }
    return tir::seq(std::move(stores));
  }

  // out = combine(out, source); with several values all are computed before any is stored.
  Stmt update_of(const OperationNode& op, const std::vector<Buffer>& outputs, const std::vector<Expr>& point) {
    const auto& reduce = *op.body[0].as<ir::Reduce>();
    const ir::CommReducerNode& combiner = *reduce.combiner;
    std::vector<Buffer> accumulators(combiner.result.size());  // by value index
    for (size_t k = 0; k < outputs.size(); ++k)
      accumulators[static_cast<size_t>(op.body[k].as<ir::Reduce>()->value_index)] = outputs[k];
    ir::VarMap values;
    for (size_t v = 0; v < combiner.lhs.size(); ++v) {
      support::require(static_cast<bool>(accumulators[v]), "a reduction of several values misses an output");
      values[combiner.lhs[v]] = ir::load(accumulators[v], point);
      values[combiner.rhs[v]] = rename_(reduce.sources[v]);
    }
    std::vector<Expr> results;
    for (const Expr& result : combiner.result) results.push_back(ir::substitute(result, values));

    Stmt update;
    if (results.size() == 1) {
      update = ir::make<tir::BufferStore>(accumulators[0], results[0], point);
    } else {
      std::vector<Stmt> stores;
      std::vector<Var> lets;
      for (size_t v = 0; v < results.size(); ++v) {
        lets.push_back(ir::var("value" + std::to_string(v), results[v]->dtype));
        stores.push_back(ir::make<tir::BufferStore>(accumulators[v], lets[v], point));
      }
      update = tir::seq(std::move(stores));
      for (size_t v = results.size(); v-- > 0;) update = ir::make<tir::LetStmt>(lets[v], results[v], std::move(update));
    }
    if (reduce.condition) update = ir::make<tir::IfThenElse>(rename_(reduce.condition), std::move(update), Stmt{});
    return update;
  }

  // Symbols that no parameter's shape binds alone become scalar parameters.
  void add_scalars(const Stmt& body, std::vector<Var>& scalars) const {
    std::unordered_set<const ir::Node*> bound;
    for (const Var& scalar : scalars) bound.insert(scalar.get());
    for (const Buffer& buffer : parameters_)
      for (const Expr& extent : buffer->shape)
        if (extent.as<ir::VarNode>()) bound.insert(extent.get());
    const auto add_free = [&](const NodeRef& node) {
      for (const Var& v : ir::free_vars(node))
        if (!v->dtype.is_handle() && bound.insert(v.get()).second) scalars.push_back(v);
    };
    for (const Buffer& buffer : parameters_) add_free(buffer);
    add_free(body);
  }

  std::unordered_set<const ir::Node*> known_, given_;
  std::unordered_set<const OperationNode*> done_;
  std::vector<Buffer> parameters_, allocated_;
  std::vector<Tensor> later_;
  std::vector<Stmt> statements_;
  Names buffer_names_, block_names_;
  Rename rename_;
};

}  // namespace

tir::Function create_prim_func(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                               std::vector<Var> scalars, ir::Attributes attrs) {
  return Lowering().function(inputs, outputs, std::move(scalars), std::move(attrs));
}

}  // namespace lathe::te
