// Sequences and optionals as instructions.
#include "ir/formats/dlpack_type.h"
#include "lower/program/function_lowering.h"
#include "relax/collection.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(write_program_joins_backwards, "lower_test", "the elements of a sequence are joined last to first");

using namespace relax;  // NOLINT: the subject of this file
using abi::Opcode;
using abi::ValueKind;
using support::Result;

// The scalar that argument i holds as an operand, or absent.
Result<uint32_t> FunctionLowering::position(const Call& call, size_t i, const std::string& node) {
  if (i >= call.args.size() || !call.args[i]) return abi::absent;
  const uint32_t reg = function_.reg(ValueKind::scalar);
  function_.emit(Opcode::load_scalar, {reg, TRY(values(call.args[i])).at(0), immediate(0)}, node);
  return reg;
}

// That a position, counted from either end, is one of an element of the sequence, or of the end; without one, that
// there is an element.
void FunctionLowering::check_position(uint32_t sequence, uint32_t position, bool may_be_end, const Call& call) {
  const ir::NodeRef at(&call);
  const std::string node = node_name(at), prefix = operator_prefix(at);
  const auto scalar = [&](Opcode opcode, uint32_t a, uint32_t b) {
    const uint32_t reg = function_.reg(ValueKind::scalar);
    function_.emit(opcode, {reg, a, b}, node);
    return reg;
  };
  const uint32_t count = function_.reg(ValueKind::scalar);
  function_.emit(Opcode::sequence_length, {count, sequence}, node);
  if (position == abi::absent) {
    if (may_be_end) return;
    const std::string text = prefix + "an empty sequence has no element to erase";
    function_.emit(Opcode::assert_true, {count, parts_.writer.text(text)}, node);
    return;
  }
  const uint32_t least = scalar(Opcode::scalar_subtract, immediate(0), count);
  const uint32_t low = scalar(Opcode::scalar_less_equal, least, position);
  const uint32_t high = scalar(may_be_end ? Opcode::scalar_less_equal : Opcode::scalar_less, position, count);
  const uint32_t inside = scalar(Opcode::scalar_minimum, low, high);
  const std::string text = prefix +
                           "position % lies outside of a sequence of % elements, which has positions in [%, %" +
                           (may_be_end ? "]" : ")");
  function_.emit(Opcode::assert_numbers, {inside, parts_.writer.text(text), 4, position, count, least, count}, node);
}

// A tensor of one scalar, in memory of its own.
uint32_t FunctionLowering::scalar_tensor(uint32_t scalar, ir::DType dtype, const std::string& node) {
  const uint32_t reg = function_.reg(ValueKind::tensor, dlpack_type(dtype), 0);
  function_.emit(Opcode::alloc_tensor, {reg, abi::absent, 0}, node);
  function_.emit(Opcode::store_scalar, {reg, immediate(0), scalar}, node);
  return reg;
}

Result<bool> FunctionLowering::collection(const VarBinding& bound, const Call& call, const Operator& op) {
  const std::string node = node_name(bound.value);
  const auto emit = [&](Opcode opcode, std::vector<uint32_t> operands) {
    function_.emit(opcode, std::move(operands), node);
  };
  const auto scalar = [&] { return function_.reg(ValueKind::scalar); };
  const auto argument = [&](size_t i) -> Result<uint32_t> { return TRY(values(call.args.at(i))).at(0); };
  Registers made;
  if (&op == &sequence_length_operator || &op == &optional_has_operator) {
    const bool is_length = &op == &sequence_length_operator;
    const uint32_t count = scalar();
    emit(is_length ? Opcode::sequence_length : Opcode::optional_has, {count, TRY(argument(0))});
    made = {scalar_tensor(count, is_length ? ir::DType::int64() : ir::DType::boolean(), node)};
  } else {
    made = TRY(make_registers(bound.var->struct_info, bound.var->name));
    const uint32_t into = made.at(0);
    if (&op == &make_sequence_operator) {
      std::vector<uint32_t> operands{into, static_cast<uint32_t>(call.args.size())};
      for (size_t i = 0; i < call.args.size(); ++i) operands.push_back(TRY(argument(i)));
      emit(Opcode::make_sequence, std::move(operands));
    } else if (&op == &sequence_insert_operator) {
      const uint32_t at = TRY(position(call, 2, node));
      check_position(TRY(argument(0)), at, true, call);
      emit(Opcode::sequence_insert, {into, TRY(argument(0)), at, TRY(argument(1))});
    } else if (&op == &sequence_erase_operator) {
      const uint32_t at = TRY(position(call, 1, node));
      check_position(TRY(argument(0)), at, false, call);
      emit(Opcode::sequence_erase, {into, TRY(argument(0)), at});
    } else if (&op == &sequence_at_operator) {
      const uint32_t at = TRY(position(call, 1, node));
      check_position(TRY(argument(0)), at, false, call);
      emit(Opcode::sequence_at, {into, TRY(argument(0)), at});
    } else if (&op == &make_optional_operator) {
      emit(Opcode::make_optional, {into, call.args.empty() || !call.args[0] ? abi::absent : TRY(argument(0))});
    } else if (&op == &optional_get_operator) {
      const uint32_t has = scalar();
      emit(Opcode::optional_has, {has, TRY(argument(0))});
      const std::string text = operator_prefix(bound.value) + "an optional without a value is read";
      emit(Opcode::assert_true, {has, parts_.writer.text(text)});
      emit(Opcode::optional_get, {into, TRY(argument(0))});
    } else if (&op == &join_sequence_operator) {
      const uint32_t sequence = TRY(argument(0));
      const auto* element = call.args[0]->struct_info.as<SequenceStructInfo>()->element.as<TensorStructInfo>();
      const bool new_axis = static_cast<const JoinSequenceAttributes&>(*call.attributes).new_axis;
      TRY(join(into, sequence, *element, new_axis, call));
    } else if (&op == &split_sequence_operator) {
      const auto* element = bound.var->struct_info.as<SequenceStructInfo>()->element.as<TensorStructInfo>();
      TRY(split(into, call, *element, node));
    } else {
      return false;
    }
  }
  lasting_.insert(made.begin(), made.end());
  registers_[bound.var.get()] = std::move(made);
  return true;
}

// One pass over the elements for the extent of the axis, one to copy them behind each other.
support::Status FunctionLowering::join(uint32_t into, uint32_t sequence, const TensorStructInfo& element, bool new_axis,
                                       const Call& call) {
  const std::string node = node_name(ir::NodeRef(&call)), prefix = operator_prefix(ir::NodeRef(&call));
  const auto emit = [&](Opcode opcode, std::vector<uint32_t> operands) {
    function_.emit(opcode, std::move(operands), node);
  };
  const auto scalar = [&] { return function_.reg(ValueKind::scalar); };
  const auto rank = static_cast<uint32_t>(element.ndim);
  const uint32_t count = scalar(), i = scalar(), total = scalar(), own = scalar(), row = scalar(), first = scalar();
  const uint32_t part = tensor_register(element, ""), place = tensor_register(element, "");
  emit(Opcode::sequence_length, {count, sequence});
  emit(Opcode::assert_true, {count, parts_.writer.text(prefix + "an empty sequence is joined")});
  emit(Opcode::sequence_at, {part, sequence, immediate(0)});
  Registers extents;  // of a part, without the axis that is joined
  emit(Opcode::scalar_set, {row, immediate(1)});
  for (uint32_t d = new_axis ? 0 : 1; d < rank; ++d) {
    extents.push_back(scalar());
    emit(Opcode::read_dim, {extents.back(), part, immediate(d)});
    emit(Opcode::scalar_multiply, {row, row, extents.back()});
  }
  const auto each = [&](const std::function<void()>& body) {
    const uint32_t next = function_.label(), done = function_.label();
    emit(Opcode::loop_begin, {i, immediate(0), count, done});
    function_.bind(next);
    if (support::flip(write_program_joins_backwards)) {
      emit(Opcode::scalar_subtract, {own, immediate(-1), i});
      emit(Opcode::sequence_at, {part, sequence, own});
    } else {
      emit(Opcode::sequence_at, {part, sequence, i});
    }
    body();
    emit(Opcode::loop_next, {i, count, next});
    function_.bind(done);
  };
  emit(Opcode::scalar_set, {own, immediate(1)});
  emit(Opcode::scalar_set, {total, new_axis ? count : immediate(0)});
  if (!new_axis)
    each([&] {
      emit(Opcode::read_dim, {own, part, immediate(0)});
      emit(Opcode::scalar_add, {total, total, own});
    });
  std::vector<uint32_t> whole{into, abi::absent, static_cast<uint32_t>(extents.size()) + 1, total};
  whole.insert(whole.end(), extents.begin(), extents.end());
  emit(Opcode::alloc_tensor, std::move(whole));
  emit(Opcode::scalar_set, {first, immediate(0)});
  const uint32_t elements = scalar(), other = scalar(), same = scalar();
  const uint32_t text = parts_.writer.text(
      prefix +
      "element % of the sequence has an extent of % where the first has %, and those that are joined are alike");
  each([&] {
    for (size_t k = 0; k < extents.size(); ++k) {
      emit(Opcode::read_dim, {other, part, immediate(static_cast<int64_t>(k) + (new_axis ? 0 : 1))});
      emit(Opcode::scalar_equal, {same, other, extents[k]});
      emit(Opcode::assert_numbers, {same, text, 3, i, other, extents[k]});
    }
    std::vector<uint32_t> operands{place, into, first, rank};
    if (!new_axis) {
      emit(Opcode::read_dim, {own, part, immediate(0)});
      operands.push_back(own);
    }
    operands.insert(operands.end(), extents.begin(), extents.end());
    emit(Opcode::view, std::move(operands));
    emit(Opcode::copy, {place, part});
    emit(Opcode::scalar_multiply, {elements, row, new_axis ? immediate(1) : own});
    emit(Opcode::scalar_add, {first, first, elements});
  });
  for (const uint32_t reg : {part, place}) emit(Opcode::kill, {reg});
  return support::success();
}

support::Status FunctionLowering::split(uint32_t into, const Call& call, const TensorStructInfo& element,
                                        const std::string& node) {
  const auto emit = [&](Opcode opcode, std::vector<uint32_t> operands) {
    function_.emit(opcode, std::move(operands), node);
  };
  const auto scalar = [&] { return function_.reg(ValueKind::scalar); };
  const std::string prefix = operator_prefix(ir::NodeRef(&call));
  const uint32_t x = TRY(values(call.args[0])).at(0);
  const bool keep = static_cast<const SplitSequenceAttributes&>(*call.attributes).keep_axis;
  const auto* sizes = call.args.size() > 1 && call.args[1] ? as_tensor(call.args[1]) : nullptr;
  const uint32_t given = sizes ? TRY(values(call.args[1])).at(0) : 0;
  const auto* info = as_tensor(call.args[0]);
  const uint32_t extent = scalar(), row = scalar(), at = scalar(), size = scalar(), left = scalar(), ok = scalar();
  const uint32_t part = tensor_register(element, ""), first = scalar(), i = scalar(), count = scalar();
  emit(Opcode::read_dim, {extent, x, immediate(0)});
  Registers inner;
  emit(Opcode::scalar_set, {row, immediate(1)});
  for (int64_t d = 1; d < info->ndim; ++d) {
    inner.push_back(scalar());
    emit(Opcode::read_dim, {inner.back(), x, immediate(d)});
    emit(Opcode::scalar_multiply, {row, row, inner.back()});
  }
  const bool by_vector = sizes && sizes->ndim == 1;
  if (by_vector) {
    emit(Opcode::read_dim, {count, given, immediate(0)});
  } else {
    if (sizes)
      emit(Opcode::load_scalar, {size, given, immediate(0)});
    else
      emit(Opcode::scalar_set, {size, immediate(1)});
    emit(Opcode::scalar_less, {ok, immediate(0), size});
    emit(Opcode::assert_true,
         {ok, parts_.writer.text(prefix + "a tensor is split into parts of no or negative extent")});
    // Rounded up, without the sum that could wrap.
    emit(Opcode::scalar_subtract, {left, immediate(0), extent});
    emit(Opcode::scalar_floor_divide, {count, left, size});
    emit(Opcode::scalar_subtract, {count, immediate(0), count});
  }
  emit(Opcode::make_sequence, {into, 0});
  emit(Opcode::scalar_set, {at, immediate(0)});
  const uint32_t next = function_.label(), done = function_.label();
  emit(Opcode::loop_begin, {i, immediate(0), count, done});
  function_.bind(next);
  emit(Opcode::scalar_subtract, {left, extent, at});
  if (by_vector)
    emit(Opcode::load_scalar, {size, given, i});
  else
    emit(Opcode::scalar_minimum, {size, size, left});
  const uint32_t text = parts_.writer.text(prefix + "the parts of a tensor that is split do not add up to its extent");
  if (!keep) {
    emit(Opcode::scalar_equal, {ok, size, immediate(1)});
    emit(Opcode::assert_true, {ok, text});
  }
  emit(Opcode::scalar_less_equal, {ok, size, left});
  emit(Opcode::assert_true, {ok, text});
  emit(Opcode::scalar_multiply, {first, at, row});
  std::vector<uint32_t> operands{part, x, first, static_cast<uint32_t>(element.ndim)};
  if (keep) operands.push_back(size);
  operands.insert(operands.end(), inner.begin(), inner.end());
  emit(Opcode::view, std::move(operands));
  emit(Opcode::sequence_insert, {into, into, abi::absent, part});
  emit(Opcode::scalar_add, {at, at, size});
  emit(Opcode::loop_next, {i, count, next});
  function_.bind(done);
  emit(Opcode::scalar_equal, {ok, at, extent});
  emit(Opcode::assert_true, {ok, text});
  emit(Opcode::kill, {part});
  return support::success();
}

}  // namespace lathe::lower
