#include "tir/differentiate/adjoint_program.h"

#include "ir/visit.h"
#include "tir/analysis/regions.h"
#include "tir/codes.h"
#include "tir/differentiate/plain_statements.h"
#include "tir/differentiate/reverse.h"
#include "tir/scalars.h"

namespace lathe::tir {

namespace {

// One statement of the program's top level.
struct Item {
  Stmt statement;              // as it stands, or plain
  std::optional<Stage> stage;  // where it is one, and the first to store to its output
  BufferSet stored, read;
  std::vector<Stmt> backward;
};

// A block over whatever `body` touches, so that plain statements stand where blocks are expected.
Stmt opaque_block(Stmt body, const std::string& name) {
  if (is_nop(body)) return body;
  std::vector<BufferRegion> reads, writes;
  const Regions touched = access_regions(body);
  for (const BufferRegion& region : touched.reads) reads.push_back(region_of(region->buffer));
  for (const BufferRegion& region : touched.writes) writes.push_back(region_of(region->buffer));
  auto block = ir::make<Block>(std::vector<IterVar>{}, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                               std::move(reads), std::move(writes), name, Stmt(), std::move(body), Attributes());
  return ir::make<BlockRealize>(std::vector<Expr>{}, ir::boolean(true), block);
}

// to[i…] = value(i…), as a block.
Stmt fill(const Buffer& to, support::function_ref<Expr(const std::vector<Expr>&)> value) {
  std::vector<IterVar> iters;
  std::vector<Var> loops;
  std::vector<Expr> at, values;
  for (const Expr& extent : to->shape) {
    const Var v = ir::var("v" + std::to_string(iters.size()));
    iters.push_back(ir::make<IterVarNode>(Range{ir::int64(0), extent}, v, IterType::spatial));
    loops.push_back(ir::var("i" + std::to_string(loops.size())));
    values.push_back(loops.back());
    at.push_back(v);
  }
  const Expr element = value(at);
  std::vector<BufferRegion> reads;
  if (const auto* load = element.as<BufferLoad>()) reads.push_back(point_region(load->buffer, load->indices));
  auto block = ir::make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{}, std::move(reads),
                               std::vector<BufferRegion>{point_region(to, at)}, to->name + "_init", Stmt(),
                               ir::make<BufferStore>(to, element, at), Attributes());
  Stmt nest = ir::make<BlockRealize>(std::move(values), ir::boolean(true), block);
  for (size_t k = loops.size(); k-- > 0;)
    nest = ir::make<For>(loops[k], ir::int64(0), to->shape[k], ForKind::serial, std::move(nest));
  return nest;
}

Stmt zeros(const Buffer& b) {
  return fill(b, [&](const std::vector<Expr>&) { return ir::constant(b->dtype, 0); });
}

class AdjointProgram {
 public:
  AdjointProgram(const Function& f, const AdjointRequest& request) : f_(f), request_(request) {}

  Function build() {
    const BlockRealize* root = root_of(*f_);
    if (!root || !root->block->match_buffers.empty())
      throw support::DiagnosticError(support::Diagnostic{
          .code = codes::no_gradient, .message = "no gradient is made of a tensor program without a root block"});
    split_parameters();
    allocated_ = root->block->alloc_buffers;
    read_items(root->block->body);
    find_active();
    name_adjoints();
    reverse_items();
    overwrite_adjoints();
    return finish();
  }

 private:
  void split_parameters() {
    for (const auto& [param, buffer] : f_->buffer_map)
      (inputs_.size() < request_.inputs ? inputs_ : outputs_).push_back(buffer);
    scalars_ = scalar_params(*f_);
  }

  void read_items(const Stmt& body) {
    std::vector<Stmt> statements{body};
    if (const auto* sequence = body.as<SeqStmt>()) statements = sequence->seq;
    // Outputs that a stage may only add to: constants are all they hold before.
    BufferSet written, constant;
    for (const Stmt& s : statements) {
      Item item{s, as_stage(s), stored_in(s), read_in(s), {}};
      if (item.stage) {
        const ir::Node* output = item.stage->output.get();
        const bool combines = item.stage->kind != Stage::Kind::assign && !item.stage->has_init;
        if (combines ? !constant.count(output) : written.count(output) != 0) item.stage.reset();
        constant.erase(output);
        if (item.stage && item.stage->kind == Stage::Kind::assign && read_in(item.stage->value).empty())
          constant.insert(output);
      }
      merge(written, item.stored);
      if (!item.stage) {
        PlainStatement plain = plain_statement(s);
        item.statement = plain.statement;
        item.stored = stored_in(plain.statement);
        item.read = read_in(plain.statement);
        merge(written, item.stored);
        allocated_.insert(allocated_.end(), plain.temporary.begin(), plain.temporary.end());
        for (const ir::Node* buffer : item.stored) changed_.insert(buffer);
      }
      items_.push_back(std::move(item));
    }
  }

  // Buffers whose value depends on a wanted input, by stores of floats.
  void find_active() {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (request_.wanted[i]) active_.insert(inputs_[i].get());
    const auto active = [&](const Buffer& b) { return active_.count(b.get()) != 0; };
    for (size_t before = 0; before != active_.size();) {
      before = active_.size();
      for (const Item& item : items_)
        ir::post_order(item.statement, [&](const NodeRef& node) {
          const auto* store = node.as<BufferStore>();
          if (store && is_active(store->value, active)) active_.insert(store->buffer.get());
        });
    }
  }

  Buffer named_adjoint(const Buffer& b) { return ir::buffer("d_" + b->name, b->shape, b->dtype); }

  void add_adjoint(const Buffer& buffer, const Buffer& given) {
    if (!active_.count(buffer.get())) return;
    const Buffer adjoint = named_adjoint(buffer);
    adjoints_.add(buffer, adjoint);
    allocated_.push_back(adjoint);
    if (given)
      prologue_.emplace_back(Buffer(), fill(adjoint, [&](const std::vector<Expr>& at) { return ir::load(given, at); }));
    else
      prologue_.emplace_back(adjoint, zeros(adjoint));
  }

  // The adjoint of an output changes where it is passed on twice, or where the output is overwritten: a copy does.
  void name_adjoints() {
    const std::vector<Buffer> own = allocated_;
    allocated_.insert(allocated_.end(), outputs_.begin(), outputs_.end());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Buffer given;
      if (request_.given[i]) {
        given = ir::buffer("adjoint_" + outputs_[i]->name, outputs_[i]->shape, outputs_[i]->dtype);
        parameters_.push_back(given);
      }
      if (given && active_.count(outputs_[i].get()) && !is_changed(outputs_[i]))
        adjoints_.add(outputs_[i], given);
      else
        add_adjoint(outputs_[i], given);
    }
    for (const Buffer& b : own) add_adjoint(b, {});
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!request_.wanted[i]) continue;
      const Buffer adjoint = named_adjoint(inputs_[i]);
      adjoints_.add(inputs_[i], adjoint);
      results_.push_back(adjoint);
      prologue_.emplace_back(adjoint, zeros(adjoint));
    }
  }

  // Whether the reversal writes to the adjoint of an output.
  bool is_changed(const Buffer& output) const {
    if (changed_.count(output.get())) return true;
    for (const Item& item : items_) {
      if (!item.stage) continue;
      const bool own = item.stage->output == output;
      if (own && item.stage->kind != Stage::Kind::assign && item.stage->kind != Stage::Kind::sum) return true;
      if (!own && item.read.count(output.get())) return true;
    }
    return false;
  }

  // Buffers that are stored to more than once, between stores that a reversal must undo: from the first item that
  // stores to one to the last, an item's reversal reads it.
  BufferSet taped() const {
    std::vector<BufferSet> needed;
    for (const Item& item : items_)
      needed.push_back(item.stage ? needed_by_reversal(*item.stage, adjoints_)
                                  : needed_by_reversal(item.statement, adjoints_));
    BufferSet result;
    for (const ir::Node* buffer : changed_) {
      size_t first = items_.size(), last = 0;
      for (size_t k = 0; k < items_.size(); ++k)
        if (items_[k].stored.count(buffer)) first = std::min(first, k), last = k;
      for (size_t k = first; k <= last; ++k)
        if (needed[k].count(buffer)) result.insert(buffer);
    }
    return result;
  }

  // A tape takes what is there before the first store as well: something must be.
  void fill_before_taping(const BufferSet& kept) {
    for (const Buffer& buffer : allocated_) {
      if (!kept.count(buffer.get())) continue;
      const auto first = std::find_if(items_.begin(), items_.end(),
                                      [&](const Item& item) { return item.stored.count(buffer.get()) != 0; });
      if (first == items_.end() || first->stage) continue;
      const Stmt start = zeros(buffer);
      items_.insert(first, Item{start, as_stage(start), stored_in(start), {}, {}});
    }
  }

  void reverse_items() {
    const BufferSet kept = taped();
    fill_before_taping(kept);
    for (Item& item : items_) {
      if (item.stage) {
        item.backward = reverse_stage(*item.stage, adjoints_);
        continue;
      }
      ReversedStatement reversed = reverse_statement(item.statement, adjoints_, kept);
      item.statement = opaque_block(reversed.forward, "again");
      if (!is_nop(reversed.backward)) item.backward = {opaque_block(reversed.backward, "backward")};
      allocated_.insert(allocated_.end(), reversed.tapes.begin(), reversed.tapes.end());
      item.stored = stored_in(item.statement);
      item.read = read_in(item.statement);
    }
  }

  // An adjoint that one stage gives all of needs no zeros before.
  void overwrite_adjoints() {
    std::unordered_map<const ir::Node*, int> stores;
    for (const Item& item : items_)
      for (const Stmt& s : item.backward)
        for (const ir::Node* buffer : stored_in(s)) ++stores[buffer];
    for (Item& item : items_) {
      if (!item.stage) continue;
      BufferSet overwritten = covered_by_reversal(*item.stage, adjoints_);
      std::erase_if(overwritten, [&](const ir::Node* buffer) { return stores[buffer] != 1; });
      std::erase_if(prologue_, [&](const auto& start) { return overwritten.count(start.first.get()) != 0; });
      if (!overwritten.empty()) item.backward = reverse_stage(*item.stage, adjoints_, overwritten);
    }
  }

  Function finish() {
    std::vector<Stmt> backward;
    BufferSet needed;
    for (size_t k = items_.size(); k-- > 0;)
      for (const Stmt& s : items_[k].backward) {
        backward.push_back(s);
        merge(needed, read_in(s));
      }
    // What nothing reads any more is not computed again.
    std::vector<Stmt> statements;
    for (size_t k = items_.size(); k-- > 0;) {
      const Item& item = items_[k];
      if (std::none_of(item.stored.begin(), item.stored.end(), [&](const ir::Node* b) { return needed.count(b); }))
        continue;
      merge(needed, item.read);
      statements.push_back(item.statement);
    }
    std::reverse(statements.begin(), statements.end());
    for (const auto& [adjoint, start] : prologue_) statements.push_back(start);
    statements.insert(statements.end(), backward.begin(), backward.end());
    const Stmt body = seq(std::move(statements));
    BufferSet used = read_in(body);
    merge(used, stored_in(body));
    std::erase_if(allocated_, [&](const Buffer& b) { return !used.count(b.get()); });

    std::vector<Buffer> parameters = inputs_;
    parameters.insert(parameters.end(), parameters_.begin(), parameters_.end());
    parameters.insert(parameters.end(), results_.begin(), results_.end());
    return prim_func(std::move(parameters), root_block(body, allocated_), scalars_);
  }

  const Function& f_;
  const AdjointRequest& request_;
  std::vector<Buffer> inputs_, outputs_, allocated_, parameters_, results_;
  std::vector<Var> scalars_;
  std::vector<Item> items_;
  std::vector<std::pair<Buffer, Stmt>> prologue_;  // what adjoints are before anything is added to them
  BufferSet active_, changed_;                     // changed: by statements that are no stages
  Adjoints adjoints_;
};

}  // namespace

Function adjoint_program(const Function& f, const AdjointRequest& request) {
  return AdjointProgram(f, request).build();
}

}  // namespace lathe::tir
