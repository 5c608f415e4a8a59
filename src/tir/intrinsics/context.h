// Context: what users register, passed explicitly to whoever needs it. Tensor intrinsics so far.
#pragma once

#include <mutex>

#include "support/result.h"
#include "tir/stmt.h"

namespace lathe::tir {

// Two functions over the same buffers: what is computed, as loops that anybody can run, and how a device does it. A
// block is tensorized when its body, found to be the description, becomes the implementation.
struct TensorIntrin {
  Function description, implementation;
};

// The annotation of a tensorized block: the name of its intrinsic. The block's views are the intrinsic's buffers, in
// the order of its parameters.
inline constexpr const char* tensor_intrin_key = "tensor_intrin";
// The name of the intrinsic that the block's body is the implementation of; null: none.
const std::string* tensor_intrin_of(const Block& block);

// What one of the two functions does: the body of its root block, or where it has no blocks all of it.
const Stmt& intrin_body(const PrimFunc& function);

// Why the two functions make no intrinsic: they differ in their buffers, the description cannot be run, or the
// implementation writes what the description does not.
support::Status check_tensor_intrin(const std::string& name, const TensorIntrin& intrin);

// Knows the intrinsics of the library (tir/intrinsics/library.h) from the start. Safe to use from several threads.
class Context {
 public:
  // Refused where the two make no intrinsic, and where the name is taken unless `replace` is set.
  support::Status add(const std::string& name, TensorIntrin intrin, bool replace = false);
  std::optional<TensorIntrin> find(const std::string& name) const;
  std::vector<std::string> names() const;  // in alphabetical order

 private:
  mutable std::mutex mutex_;
  std::map<std::string, TensorIntrin> intrins_;
};

}  // namespace lathe::tir
