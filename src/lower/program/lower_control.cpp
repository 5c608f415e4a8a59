// Calls of functions, branches and loops as instructions.
#include "ir/formats/dlpack_type.h"
#include "lower/program/function_lowering.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(write_program_swaps_branches, "lower_test", "a branch calls the function that was not chosen");
LATHE_FAULT(write_program_forgets_turns, "lower_test", "a loop gives each turn the values of the first");

using namespace relax;  // NOLINT: the subject of this file
using abi::Opcode;
using abi::ValueKind;
using support::Result;

// Operands of a call are registers; their instructions come before any label, so that both ways of a branch have them.
Result<Registers> FunctionLowering::arguments(const std::vector<Expr>& args) {
  Registers all;
  for (const Expr& arg : args) {
    const Registers one = TRY(values(arg));
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

support::Status FunctionLowering::emit_call(const std::string& name, const Registers& args, const Registers& results,
                                            const ir::NodeRef& at, const std::string& node) {
  const auto callee = parts_.writers.find(name);
  if (callee == parts_.writers.end()) return refuse(at, "the program has no function '" + name + "'");
  std::vector<uint32_t> operands{abi::ProgramWriter::index_of(callee->second), static_cast<uint32_t>(args.size())};
  operands.insert(operands.end(), args.begin(), args.end());
  operands.push_back(static_cast<uint32_t>(results.size()));
  operands.insert(operands.end(), results.begin(), results.end());
  function_.emit(Opcode::call_function, std::move(operands), node);
  return support::success();
}

support::Status FunctionLowering::call_function(const VarBinding& bound, const std::string& name,
                                                const std::vector<Expr>& args) {
  const Registers given = TRY(arguments(args));
  const Registers results = TRY(make_registers(bound.var->struct_info, bound.var->name));
  TRY(emit_call(name, given, results, bound.value, node_name(bound.value)));
  lasting_.insert(results.begin(), results.end());
  registers_[bound.var.get()] = results;
  return support::success();
}

support::Status FunctionLowering::branch(const VarBinding& bound, const Branch& branch) {
  const std::string node = node_name(bound.value);
  const Registers then = TRY(arguments(branch.then.args)), otherwise = TRY(arguments(branch.otherwise.args));
  const Registers results = TRY(make_registers(bound.var->struct_info, bound.var->name));
  const uint32_t condition = function_.reg(ValueKind::scalar);
  function_.emit(Opcode::load_scalar, {condition, TRY(values(branch.condition)).at(0), immediate(0)}, node);
  uint32_t if_true = function_.label(), if_false = function_.label();
  const uint32_t end = function_.label();
  function_.emit(Opcode::branch, {condition, if_true, if_false}, node);
  if (support::flip(write_program_swaps_branches)) std::swap(if_true, if_false);
  function_.bind(if_true);
  TRY(emit_call(branch.then.function, then, results, bound.value, node));
  function_.emit(Opcode::jump, {end}, node);
  function_.bind(if_false);
  TRY(emit_call(branch.otherwise.function, otherwise, results, bound.value, node));
  function_.bind(end);
  lasting_.insert(results.begin(), results.end());
  registers_[bound.var.get()] = results;
  return support::success();
}

// What a loop carries moves from turn to turn; its rows gather in sequences until their number is known.
support::Status FunctionLowering::loop(const VarBinding& bound, const Loop& loop) {
  const std::string node = node_name(bound.value);
  const auto emit = [&](Opcode opcode, std::vector<uint32_t> operands) {
    function_.emit(opcode, std::move(operands), node);
  };
  const auto scalar = [&] { return function_.reg(ValueKind::scalar); };
  const Registers first = TRY(arguments(loop.carried)), captured = TRY(arguments(loop.captured));
  const uint32_t turn = scalar(), trips = scalar(), goes_on = scalar(), more = scalar();
  if (loop.trips)
    emit(Opcode::load_scalar, {trips, TRY(values(loop.trips)).at(0), immediate(0)});
  else
    emit(Opcode::scalar_set, {trips, immediate(std::numeric_limits<int64_t>::max())});
  if (loop.condition)
    emit(Opcode::load_scalar, {goes_on, TRY(values(loop.condition)).at(0), immediate(0)});
  else
    emit(Opcode::scalar_set, {goes_on, immediate(1)});

  Registers carried, after, rows, gathered;
  for (size_t k = 0; k < loop.results.size(); ++k) {
    const StructInfo& info = loop.results[k];
    if (k < loop.carried.size()) {
      for (Registers* each : {&carried, &after}) {
        const Registers one = TRY(make_registers(info, bound.var->name));
        each->insert(each->end(), one.begin(), one.end());
      }
      continue;
    }
    rows.push_back(tensor_register(*info.as<TensorStructInfo>(), bound.var->name));
    gathered.push_back(function_.reg(ValueKind::sequence, {}, -1, bound.var->name));
    emit(Opcode::make_sequence, {gathered.back(), 0});
  }
  if (first.size() != carried.size()) return refuse(bound.value, "a loop carries other values than it gives");
  for (size_t k = 0; k < first.size(); ++k) emit(Opcode::move, {carried[k], first[k]});
  emit(Opcode::scalar_set, {turn, immediate(0)});

  const uint32_t test = function_.label(), body = function_.label(), done = function_.label();
  function_.bind(test);
  emit(Opcode::scalar_less, {more, turn, trips});
  emit(Opcode::scalar_and, {more, more, goes_on});
  emit(Opcode::branch, {more, body, done});
  function_.bind(body);
  // New tensors each turn: the body may keep them.
  const uint32_t turn_tensor = function_.reg(ValueKind::tensor, ir::dlpack_type(ir::DType::int64()), 0);
  const uint32_t condition = function_.reg(ValueKind::tensor, ir::dlpack_type(ir::DType::boolean()), 0);
  emit(Opcode::alloc_tensor, {turn_tensor, abi::absent, 0});
  emit(Opcode::store_scalar, {turn_tensor, immediate(0), turn});
  emit(Opcode::alloc_tensor, {condition, abi::absent, 0});
  emit(Opcode::store_scalar, {condition, immediate(0), goes_on});
  const uint32_t next_condition = function_.reg(ValueKind::tensor, ir::dlpack_type(ir::DType::boolean()), 0);
  Registers args{turn_tensor, condition}, results{next_condition};
  args.insert(args.end(), carried.begin(), carried.end());
  args.insert(args.end(), captured.begin(), captured.end());
  results.insert(results.end(), after.begin(), after.end());
  results.insert(results.end(), rows.begin(), rows.end());
  TRY(emit_call(loop.body, args, results, bound.value, node));
  emit(Opcode::load_scalar, {goes_on, next_condition, immediate(0)});
  for (size_t k = 0; k < carried.size(); ++k)
    if (!support::flip(write_program_forgets_turns)) emit(Opcode::move, {carried[k], after[k]});
  for (size_t k = 0; k < rows.size(); ++k)
    emit(Opcode::sequence_insert, {gathered[k], gathered[k], abi::absent, rows[k]});
  emit(Opcode::scalar_add, {turn, turn, immediate(1)});
  emit(Opcode::jump, {test});
  function_.bind(done);

  // Without a turn what is carried is still somebody else's memory.
  // Sequences and optionals hold what they hold.
  for (size_t k = 0; k < loop.carried.size(); ++k)
    if (!as_tensor(loop.carried[k])) lasting_.insert(first[k]);
  if (std::any_of(first.begin(), first.end(), [&](uint32_t reg) { return !lasting_.count(reg); })) {
    const uint32_t keep = function_.label(), copy = function_.label();
    emit(Opcode::branch, {turn, keep, copy});
    function_.bind(copy);
    for (size_t k = 0; k < loop.carried.size(); ++k) {
      const auto* tensor = as_tensor(loop.carried[k]);
      if (!tensor || lasting_.count(first[k])) continue;
      // By its own extents: arithmetic emitted here is not there for what follows.
      const StructInfo own = tensor_info_of_rank(tensor->ndim, tensor->dtype);
      emit(Opcode::move, {carried[k], TRY(copied(carried[k], *own.as<TensorStructInfo>()))});
    }
    function_.bind(keep);
  }
  Registers all = carried;
  for (size_t k = 0; k < rows.size(); ++k) {
    const auto& row = *loop.results[loop.carried.size() + k].as<TensorStructInfo>();
    const StructInfo stacked = tensor_info_of_rank(row.ndim + 1, row.dtype);
    all.push_back(tensor_register(*stacked.as<TensorStructInfo>(), bound.var->name));
    TRY(stack(all.back(), gathered[k], turn, row, node));
  }
  lasting_.insert(all.begin(), all.end());
  registers_[bound.var.get()] = std::move(all);
  return support::success();
}

// The elements of the sequence one after the other. Of none the tensor has no elements, and 0 where an extent is not
// known beforehand.
support::Status FunctionLowering::stack(uint32_t into, uint32_t sequence, uint32_t count, const TensorStructInfo& info,
                                        const std::string& node) {
  const auto emit = [&](Opcode opcode, std::vector<uint32_t> operands) {
    function_.emit(opcode, std::move(operands), node);
  };
  const auto rank = static_cast<uint32_t>(info.ndim);
  const uint32_t row = tensor_register(info, ""), place = tensor_register(info, "");
  const uint32_t elements = function_.reg(ValueKind::scalar), position = function_.reg(ValueKind::scalar);
  Registers extents;
  for (uint32_t d = 0; d < rank; ++d) {
    extents.push_back(function_.reg(ValueKind::scalar));
    const bool is_known = info.shape && scalars_.known((*info.shape)[d]);
    const uint32_t known = is_known ? TRY(scalars_.operand((*info.shape)[d])) : immediate(0);
    emit(Opcode::scalar_set, {extents.back(), known});
  }
  const uint32_t some = function_.label(), known = function_.label();
  emit(Opcode::branch, {count, some, known});
  function_.bind(some);
  emit(Opcode::sequence_at, {row, sequence, immediate(0)});
  for (uint32_t d = 0; d < rank; ++d) emit(Opcode::read_dim, {extents[d], row, immediate(d)});
  function_.bind(known);
  std::vector<uint32_t> whole{into, abi::absent, rank + 1, count};
  whole.insert(whole.end(), extents.begin(), extents.end());
  emit(Opcode::alloc_tensor, std::move(whole));
  emit(Opcode::scalar_set, {elements, immediate(1)});
  for (const uint32_t extent : extents) emit(Opcode::scalar_multiply, {elements, elements, extent});
  const uint32_t next = function_.label(), done = function_.label();
  emit(Opcode::loop_begin, {position, immediate(0), count, done});
  function_.bind(next);
  emit(Opcode::sequence_at, {row, sequence, position});
  const uint32_t first = function_.reg(ValueKind::scalar);
  emit(Opcode::scalar_multiply, {first, position, elements});
  std::vector<uint32_t> part{place, into, first, rank};
  part.insert(part.end(), extents.begin(), extents.end());
  emit(Opcode::view, std::move(part));
  emit(Opcode::copy, {place, row});
  emit(Opcode::loop_next, {position, count, next});
  function_.bind(done);
  for (const uint32_t reg : {row, place, sequence}) emit(Opcode::kill, {reg});
  return support::success();
}

}  // namespace lathe::lower
