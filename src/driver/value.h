// Values of any kind that a model takes and gives: the runtime's, held.
#pragma once

#include "abi/lathe.h"
#include "ir/tensor_data.h"
#include "support/result.h"

namespace lathe::driver {

struct ReleaseValue {
  void operator()(LatheValue* value) const { lathe_value_release(value); }
};
using Value = std::unique_ptr<LatheValue, ReleaseValue>;

// Copies.
support::Result<Value> value_of(const ir::TensorDataNode& tensor);
support::Result<Value> value_of(const std::vector<std::string>& strings, const std::vector<int64_t>& shape);
// A sequence, a tuple or an optional (LatheValueKind) of members.
support::Result<Value> collection_of(int32_t kind, const std::vector<Value>& members);

// A view of a tensor's elements, which keeps the value.
ir::TensorData tensor_of(const LatheValue& value);
std::vector<std::string> strings_of(const LatheValue& value);
std::vector<int64_t> shape_of_strings(const LatheValue& value);
std::vector<Value> members_of(const LatheValue& value);

// A tensor as the runtime takes it; valid as long as `tensor`.
DLTensor view_of(const ir::TensorDataNode& tensor);

}  // namespace lathe::driver
