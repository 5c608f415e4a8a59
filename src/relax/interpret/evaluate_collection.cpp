#include "relax/interpret/evaluate_collection.h"

#include "relax/codes.h"
#include "relax/collection.h"

namespace lathe::relax {

namespace {

using ir::TensorData;
using Members = std::vector<GraphValue>;

support::Diagnostic cannot(const Call& call, std::string message) {
  support::Diagnostic d{.code = codes::cannot_interpret, .message = std::move(message)};
  if (call.origin()) d.place = *call.origin();
  return d;
}

GraphValue collection(Members members) { return {GraphValue::Members{std::move(members)}}; }

// The position that argument i says, among `count`; `last` where it is absent.
Result<int64_t> position_in(const Call& call, const std::vector<GraphValue>& args, size_t i, int64_t count,
                            int64_t last) {
  if (i >= args.size() || !args[i].tensor()) return last;
  const int64_t given = ir::int_at(**args[i].tensor(), 0), at = given < 0 ? given + count : given;
  if (at >= 0 && at <= last) return at;
  return cannot(call, "position " + std::to_string(given) + " lies outside of a sequence of " + std::to_string(count) +
                          " elements");
}

// Bytes of whole rows: tensors of a type whose elements share bytes are not taken apart.
Result<int64_t> row_bytes(const Call& call, const ir::TensorDataNode& t, size_t axes) {
  int64_t elements = 1;
  for (size_t d = axes; d < t.shape.size(); ++d) elements *= t.shape[d];
  if (t.dtype.storage_bits() % 8 != 0) return cannot(call, "elements of " + t.dtype.str() + " are joined or split");
  return t.dtype.storage_bytes(elements);
}

Result<GraphValue> join(const Call& call, const Members& members) {
  const bool new_axis = static_cast<const JoinSequenceAttributes&>(*call.attributes).new_axis;
  if (members.empty()) return cannot(call, "an empty sequence is joined");
  std::string bytes;
  std::vector<int64_t> shape = (*members[0].tensor())->shape;
  if (new_axis) shape.insert(shape.begin(), 0);
  shape.at(0) = 0;
  for (const GraphValue& member : members) {
    const ir::TensorDataNode& t = **member.tensor();
    std::vector<int64_t> own = t.shape;
    if (new_axis) own.insert(own.begin(), 1);
    if (own.size() != shape.size() || !std::equal(own.begin() + 1, own.end(), shape.begin() + 1))
      return cannot(call, "elements of a sequence that do not fit are joined");
    TRY(row_bytes(call, t, 0));
    shape[0] += own[0];
    bytes.append(t.view());
  }
  return GraphValue{ir::tensor_data((*members[0].tensor())->dtype, std::move(shape), std::move(bytes))};
}

Result<GraphValue> split(const Call& call, const std::vector<GraphValue>& args) {
  const ir::TensorDataNode& x = **args[0].tensor();
  const bool keep = static_cast<const SplitSequenceAttributes&>(*call.attributes).keep_axis;
  const int64_t extent = x.shape.at(0), bytes = TRY(row_bytes(call, x, 1));
  std::vector<int64_t> sizes;
  if (args.size() > 1 && args[1].tensor() && !(*args[1].tensor())->shape.empty()) {
    for (int64_t i = 0; i < (*args[1].tensor())->elements(); ++i) sizes.push_back(ir::int_at(**args[1].tensor(), i));
  } else {
    const int64_t size = args.size() > 1 && args[1].tensor() ? ir::int_at(**args[1].tensor(), 0) : 1;
    if (size < 1) return cannot(call, "a tensor is split into parts of " + std::to_string(size));
    for (int64_t at = 0; at < extent; at += size) sizes.push_back(std::min(size, extent - at));
  }
  Members members;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent - at || (!keep && size != 1)) return cannot(call, "the parts do not add up");
    std::vector<int64_t> shape = x.shape;
    shape[0] = size;
    if (!keep) shape.erase(shape.begin());
    const auto first = static_cast<size_t>(at * bytes), length = static_cast<size_t>(size * bytes);
    members.push_back({ir::tensor_data(x.dtype, std::move(shape), std::string(x.view().substr(first, length)))});
    at += size;
  }
  if (at != extent) return cannot(call, "the parts do not add up");
  return collection(std::move(members));
}

}  // namespace

bool is_collection_operator(const Operator& op) {
  for (const Operator* each :
       {&make_sequence_operator, &sequence_insert_operator, &sequence_erase_operator, &sequence_at_operator,
        &sequence_length_operator, &join_sequence_operator, &split_sequence_operator, &make_optional_operator,
        &optional_has_operator, &optional_get_operator})
    if (each == &op) return true;
  return false;
}

Result<GraphValue> evaluate_collection(const Call& call, const std::vector<GraphValue>& args) {
  const Operator* op = callee_operator(call);
  if (op == &make_sequence_operator) return collection(args);
  if (op == &make_optional_operator) return collection(args.empty() || args[0].empty() ? Members{} : Members{args[0]});
  if (op == &split_sequence_operator) return split(call, args);
  if (!args.at(0).members()) return cannot(call, "a sequence or optional has no value");
  Members members = *args[0].members();
  const auto count = static_cast<int64_t>(members.size());
  if (op == &sequence_insert_operator) {
    const int64_t at = TRY(position_in(call, args, 2, count, count));
    members.insert(members.begin() + at, args.at(1));
    return collection(std::move(members));
  }
  if (op == &sequence_erase_operator) {
    const int64_t at = TRY(position_in(call, args, 1, count, count - 1));
    if (at < 0) return cannot(call, "an empty sequence has no element to erase");
    members.erase(members.begin() + at);
    return collection(std::move(members));
  }
  if (op == &sequence_at_operator)
    return members.at(static_cast<size_t>(TRY(position_in(call, args, 1, count, count - 1))));
  if (op == &sequence_length_operator) return GraphValue{ir::tensor_of<int64_t>(DType::int64(), {}, {count})};
  if (op == &join_sequence_operator) return join(call, members);
  if (op == &optional_has_operator)
    return GraphValue{ir::tensor_of<uint8_t>(DType::boolean(), {}, {static_cast<uint8_t>(count)})};
  if (members.empty()) return cannot(call, "an optional without a value is read");
  return members[0];
}

}  // namespace lathe::relax
