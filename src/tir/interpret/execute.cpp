#include "ir/match.h"
#include "tir/analysis/effects.h"
#include "tir/codes.h"
#include "tir/interpret/machine.h"

namespace lathe::tir::interpreter {

void Machine::store(const BufferStore& store) {
  const Value value = evaluate(store.value);
  const Places places = locate(store.buffer, store.indices, store.predicate, "a store");
  const DType element = store.buffer->dtype.element();
  const int64_t bits = element.storage_bits();
  const int width = store.buffer->dtype.lanes;
  if (value.dtype.element() != element || value.dtype.lanes != static_cast<int>(places.at().size()) * width)
    fail(codes::dtype_mismatch, fmt::format("a store of {} into '{}' of {}, {} at a time", value.dtype.str(),
                                            store.buffer->name, store.buffer->dtype.str(), places.at().size()));
  int lane = 0;
  for (const int64_t at : places.at())
    for (int k = 0; k < width; ++k, ++lane) {
      if (at < 0) continue;
      write_bits(places.memory->bytes, at + k * bits, bits, to_bits(element, value.lane(lane)));
      places.memory->mark_written(at + k * bits, bits);
    }
}

void Machine::loop(const For& loop) {
  const Value min = evaluate(loop.min);
  const int64_t extent = evaluate_int(loop.extent);
  std::vector<int64_t> order;
  const bool any_order =
      loop.kind == ForKind::parallel || loop.kind == ForKind::vectorized || loop.kind == ForKind::thread_binding;
  if (any_order && options_.seed != 0 && extent > 1) {
    step();
    order.resize(static_cast<size_t>(std::min(extent, options_.max_steps)));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
  }
  for (int64_t k = 0; k < extent; ++k) {
    const int64_t at = order.empty() ? k : order[static_cast<size_t>(k)];
    bind(loop.loop_var, Value(loop.loop_var->dtype, {min.first.i + at, 0}));
    execute(loop.body);
    if (ends_loop()) break;
  }
}

// After an iteration; whether it was left, and the loop with it.
bool Machine::ends_loop() { return std::exchange(exit_, nullptr) == &intrinsic::break_loop; }

void Machine::with_memory(const Buffer& buffer, support::function_ref<void()> body) {
  int64_t elements = 1;
  if (buffer->strides.empty()) {
    for (const Expr& extent : buffer->shape) elements *= evaluate_int(extent);
  } else {
    for (size_t d = 0; d < buffer->shape.size(); ++d)
      elements += (evaluate_int(buffer->shape[d]) - 1) * evaluate_int(buffer->strides[d]);
  }
  if (buffer->elem_offset) elements += evaluate_int(buffer->elem_offset);
  elements = std::max<int64_t>(elements, 0);
  const auto memory = fresh_memory(buffer->name, buffer->dtype.storage_bytes(elements));
  bind_memory(buffer->data, memory.get());
  body();
  memories_.erase(buffer->data.get());
}

void Machine::alias(const MatchBufferRegion& match) {
  Alias alias{match->source->buffer, {}};
  for (const Range& range : match->source->region) alias.corner.push_back(evaluate_int(range.min));
  const Buffer& buffer = match->buffer;
  if (buffer->shape.size() > alias.corner.size())
    fail(codes::match_buffer_rank,
         fmt::format("match_buffer '{}' has {} dimensions, more than its source '{}' ({})", buffer->name,
                     buffer->shape.size(), alias.source->name, alias.corner.size()));
  // Symbolic layouts of the alias are bound to the source's.
  const auto bind_symbol = [&](const Expr& layout, int64_t value) {
    const auto* symbol = layout.as<VarNode>();
    if (!symbol || (value_of(Var(symbol)) && !layout_symbols_.count(symbol))) return;
    layout_symbols_.insert(symbol);
    bind(Var(symbol), Value(symbol->dtype, {value, 0}));
  };
  int64_t stride = 1, offset = alias.source->elem_offset ? evaluate_int(alias.source->elem_offset) : 0;
  const size_t dropped = alias.corner.size() - buffer->shape.size();
  for (size_t d = alias.corner.size(); d-- > 0;) {
    const int64_t here = alias.source->strides.empty() ? stride : evaluate_int(alias.source->strides[d]);
    stride *= evaluate_int(alias.source->shape[d]);
    offset += here * alias.corner[d];
    if (d >= dropped && !buffer->strides.empty()) bind_symbol(buffer->strides[d - dropped], here);
  }
  if (buffer->elem_offset) bind_symbol(buffer->elem_offset, offset);
  aliases_[buffer.get()] = std::move(alias);
}

void Machine::instance(const BlockRealize& realize) {
  // Where the predicate does not hold, not even the values need make sense.
  if (!holds(realize.predicate)) return;
  std::vector<Value> bindings;
  bindings.reserve(realize.iter_values.size());
  for (const Expr& value : realize.iter_values) bindings.push_back(evaluate(value));
  const Block& block = *realize.block;
  if (bindings.size() != block.iter_vars.size())
    fail(codes::binding_count, fmt::format("block '{}' has {} iteration variables and {} values", block.name,
                                           block.iter_vars.size(), bindings.size()));
  bool first = true;
  for (size_t k = 0; k < bindings.size(); ++k) {
    const IterVar& iter = block.iter_vars[k];
    const int64_t min = evaluate_int(iter->dom.min), extent = evaluate_int(iter->dom.extent), at = bindings[k].first.i;
    if (at < min || at >= min + extent)
      fail(codes::out_of_bounds, fmt::format("'{}' of block '{}' is {}, outside its domain [{}, {})", iter->var->name,
                                             block.name, at, min, min + extent));
    if (iter->type == IterType::reduce && at != min) first = false;
    bind(iter->var, Value(iter->var->dtype, {at, 0}));
  }
  for (const MatchBufferRegion& match : block.match_buffers) alias(match);
  run_block(block, first, 0);
}

// Allocations nest, so that each is released when the block ends: `allocated` of them are there.
void Machine::run_block(const Block& block, bool first, size_t allocated) {
  if (allocated < block.alloc_buffers.size())
    return with_memory(block.alloc_buffers[allocated], [&] { run_block(block, first, allocated + 1); });
  if (first && block.init) execute(block.init);
  if (const std::string* intrin = tensor_intrin_of(block)) return described(block, *intrin);
  execute(block.body);
}

// The body of a tensorized block means what the description of its intrinsic does to the block's views.
void Machine::described(const Block& block, const std::string& name) {
  if (!intrins_.count(name)) {
    const auto found = options_.context ? options_.context->find(name) : std::nullopt;
    if (!found)
      fail(codes::tensor_intrin,
           fmt::format("block '{}' is of the intrinsic '{}', which is not registered", block.name, name));
    intrins_[name] = *found;
  }
  const PrimFunc& description = *intrins_[name].description;
  if (description.buffer_map.size() != block.match_buffers.size())
    fail(codes::tensor_intrin, fmt::format("block '{}' has {} views, the intrinsic '{}' has {} buffers", block.name,
                                           block.match_buffers.size(), name, description.buffer_map.size()));
  for (size_t i = 0; i < block.match_buffers.size(); ++i) {
    const Buffer &view = block.match_buffers[i]->buffer, &described = description.buffer_map[i].second;
    for (size_t d = 0; d < described->shape.size(); ++d) {
      const int64_t extent = d < view->shape.size() ? evaluate_int(view->shape[d]) : -1;
      // A size left open, or a multiple of one.
      const auto* multiple = described->shape[d].as<Mul>();
      const int64_t factor = multiple ? as_int(multiple->b).value_or(1) : 1;
      if (const auto* symbol = (multiple ? multiple->a : described->shape[d]).as<VarNode>(); symbol && factor > 0)
        bind(Var(symbol), Value(symbol->dtype, {extent / factor, 0}));
      if (evaluate_int(described->shape[d]) != extent || view->dtype != described->dtype)
        fail(codes::tensor_intrin,
             fmt::format("view '{}' of block '{}' is not what the intrinsic '{}' takes", view->name, block.name, name));
    }
    alias(make<MatchBufferRegionNode>(described, block.match_buffers[i]->source));
  }
  execute(intrin_body(description));
}

void Machine::effect(const Call& call) {
  if (call.op == &intrinsic::raise_error) {
    const auto* message = call.args[1].as<StringImm>();
    fail(codes::raised, message ? message->value : fmt::format("error {}", evaluate_int(call.args[0])));
  }
  if (call.op == &intrinsic::assume) {
    if (!holds(call.args[0])) fail(codes::assertion_failed, "a promised condition does not hold");
    return;
  }
  if (call.op == &intrinsic::break_loop || call.op == &intrinsic::continue_loop) {
    exit_ = call.op;
    return;
  }
  if (is_hint(call) || call.op == &intrinsic::tvm_storage_sync) return;
  if (call.op == &intrinsic::call_function) return call_function(call);
  if (call.op == &intrinsic::call_packed) {
    call_registered(call);
    return;
  }
  if (call.op->effect == Effect::pure) {
    evaluate(Expr(&call));
    return;
  }
  fail(codes::not_interpretable, fmt::format("'{}' cannot be interpreted", call.op->name));
}

void Machine::execute(const Stmt& s) {
  step();
  match_all(
      s,
      [&](const LetStmt& n) {
        bind(n.var, evaluate(n.value));
        execute(n.body);
      },
      [&](const AttrStmt& n) { execute(n.body); },
      [&](const AssertStmt& n) {
        if (!holds(n.condition)) fail(codes::assertion_failed, n.message);
      },
      [&](const BufferStore& n) { store(n); },
      [&](const DeclBuffer& n) {
        // A view of memory that is there already, or fresh memory.
        if (memories_.count(n.buffer->data.get())) return execute(n.body);
        with_memory(n.buffer, [&] { execute(n.body); });
      },
      [&](const Allocate& n) {
        int64_t elements = 1;
        for (const Expr& extent : n.extents) elements *= evaluate_int(extent);
        const auto memory = fresh_memory(n.buffer_var->name, n.dtype.storage_bytes(elements));
        bind_memory(n.buffer_var, memory.get());
        execute(n.body);
        memories_.erase(n.buffer_var.get());
      },
      [&](const AllocateConst& n) {
        Memory memory{.name = n.buffer_var->name, .size = n.data->byte_size()};
        const std::string_view bytes = n.data->view();
        memory.own_bytes.assign(bytes.begin(), bytes.end());
        memory.bytes = memory.own_bytes.data();
        bind_memory(n.buffer_var, &memory);
        execute(n.body);
        memories_.erase(n.buffer_var.get());
      },
      [&](const SeqStmt& n) {
        for (const Stmt& each : n.seq) {
          execute(each);
          if (exit_) break;
        }
      },
      [&](const IfThenElse& n) {
        if (holds(n.condition))
          execute(n.then_case);
        else if (n.else_case)
          execute(n.else_case);
      },
      [&](const Evaluate& n) {
        if (const auto* called = n.value.as<Call>())
          effect(*called);
        else
          evaluate(n.value);
      },
      [&](const For& n) { loop(n); },
      [&](const While& n) {
        while (holds(n.condition)) {
          execute(n.body);
          if (ends_loop()) break;
        }
      },
      [&](const Block& n) {
        fail(codes::binding_count, fmt::format("block '{}' stands alone, without values for its variables", n.name));
      },
      [&](const BlockRealize& n) { instance(n); });
}

}  // namespace lathe::tir::interpreter
