// Calls of functions of the module: memory is shared, numbers are copied.
#include "tir/analysis/calls.h"

#include "tir/codes.h"
#include "tir/interpret/machine.h"

namespace lathe::tir::interpreter {

void Machine::call_function(const Call& call) {
  const std::string* name = callee_of(call);
  const Function callee = name && options_.module ? options_.module->find_as<PrimFunc>(*name) : Function();
  if (!callee) fail(codes::wrong_call, fmt::format("there is no function '{}' here", name ? *name : ""));
  if (callee->params.size() + 1 != call.args.size())
    fail(codes::wrong_call,
         fmt::format("'{}' takes {} arguments, not {}", *name, callee->params.size(), call.args.size() - 1));
  if (std::find(called_.begin(), called_.end(), *name) != called_.end())
    fail(codes::wrong_call, fmt::format("'{}' calls itself", *name));
  called_.push_back(*name);
  // Symbols of its layouts are bound anew by each call.
  for (const auto& [param, buffer] : callee->buffer_map)
    for (const Var& symbol : free_vars(buffer)) values_.erase(symbol.get());
  for (size_t i = 0; i < callee->params.size(); ++i) {
    const Var& param = callee->params[i];
    if (callee->buffer_of(param)) continue;
    const Value given = evaluate(call.args[i + 1]);
    bind(param, Value(param->dtype, convert(param->dtype, given.dtype, given.first)));
  }
  for (size_t i = 0; i < callee->params.size(); ++i)
    if (const Buffer wanted = callee->buffer_of(callee->params[i])) pass(*name, wanted, call.args[i + 1]);
  execute(callee->body);
  called_.pop_back();
}

void Machine::pass(const std::string& name, const Buffer& wanted, const Expr& given) {
  const BufferLoad* element = passed_element(given);
  if (!element) {
    const auto* address = given.as<VarNode>();
    const auto it = address ? memories_.find(address) : memories_.end();
    if (it == memories_.end())
      fail(codes::wrong_call, fmt::format("'{}' is passed no memory for '{}'", name, wanted->name));
    const Pointer there = it->second;
    bind_memory(wanted->data, there.memory, there.bit);
    return;
  }
  const Buffer& buffer = element->buffer;
  std::vector<int64_t> at, extents;
  for (const Expr& index : element->indices) at.push_back(evaluate_int(index));
  for (const Expr& extent : buffer->shape) extents.push_back(evaluate_int(extent));
  // A buffer itself, not one of its elements that happens to be the first.
  const bool whole =
      std::all_of(element->indices.begin(), element->indices.end(), [](const Expr& i) { return is_int(i, 0); });
  const auto matches = [&](const Expr& declared, int64_t there) {
    const auto* symbol = declared.as<VarNode>();
    if (symbol && !value_of(Var(symbol))) bind(Var(symbol), Value(symbol->dtype, {there, 0}));
    return evaluate_int(declared) == there;
  };
  const bool same_rank = wanted->shape.size() == extents.size();
  bool same_shape = whole && same_rank;
  for (size_t d = 0; same_rank && d < extents.size(); ++d) same_shape &= matches(wanted->shape[d], extents[d] - at[d]);
  if (whole && same_rank && !same_shape)
    fail(codes::assertion_failed,
         fmt::format("'{}' of '{}' has another shape than '{}'", wanted->name, name, buffer->name));
  // A view of a block is a part of memory whose rows lie apart.
  if (const auto view = aliases_.find(buffer.get()); view != aliases_.end()) {
    if (!same_shape || !wanted->strides.empty())
      fail(codes::wrong_call,
           fmt::format("'{}' is a view, and '{}' of '{}' is none of its shape", buffer->name, wanted->name, name));
    const Alias same = view->second;
    aliases_[wanted.get()] = same;
    return;
  }
  const Pointer base = memory_of(buffer);
  int64_t offset = buffer->elem_offset ? evaluate_int(buffer->elem_offset) : 0, compact = 1;
  std::vector<int64_t> strides(at.size());
  for (size_t d = at.size(); d-- > 0;) {
    strides[d] = buffer->strides.empty() ? compact : evaluate_int(buffer->strides[d]);
    compact *= evaluate_int(buffer->shape[d]);
    offset += at[d] * strides[d];
  }
  for (size_t d = 0; same_rank && d < wanted->strides.size(); ++d)
    if (!matches(wanted->strides[d], strides[d]))
      fail(codes::assertion_failed, fmt::format("the rows of '{}' do not lie as '{}' of '{}' wants them",
                                                element->buffer->name, wanted->name, name));
  const int64_t bits = buffer->dtype.storage_bits() * buffer->dtype.lanes;
  // The callee adds its own offset: where that is a symbol, it is the whole of it.
  const auto* told = wanted->elem_offset ? wanted->elem_offset.as<VarNode>() : nullptr;
  if (told) bind(Var(told), Value(told->dtype, {offset, 0}));
  bind_memory(wanted->data, base.memory, base.bit + (told ? 0 : offset * bits));
}

}  // namespace lathe::tir::interpreter
