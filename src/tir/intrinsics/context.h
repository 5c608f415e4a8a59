// Context: what users register, passed explicitly to whoever needs it: tensor intrinsics, and functions that programs
// call by name.
#pragma once

#include <mutex>

#include "abi/services.h"
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

// A function of the user's, called by T.call_packed while a program runs, on the thread that comes to the call. The
// result has the kind that is wanted: a function without one leaves it. What it throws goes through the program to
// whoever runs it.
using RegisteredFunction = std::function<void(std::span<const LathePassed>, LathePassed& result)>;

// Knows the intrinsics of the library (tir/intrinsics/library.h) from the start. Safe to use from several threads.
class Context {
 public:
  // Refused where the two make no intrinsic, and where the name is taken unless `replace` is set.
  support::Status add(const std::string& name, TensorIntrin intrin, bool replace = false);
  std::optional<TensorIntrin> find(const std::string& name) const;
  std::vector<std::string> names() const;  // in alphabetical order

  void set_function(const std::string& name, RegisteredFunction function);  // in the place of one of that name
  bool remove_function(const std::string& name);
  RegisteredFunction find_function(const std::string& name) const;  // empty: there is none
  std::vector<std::string> function_names() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, TensorIntrin> intrins_;
  std::map<std::string, RegisteredFunction> functions_;
};

// Calls the function of that name. Diagnostic: tir-wrong-call where there is none.
void call_registered(const Context* context, const std::string& name, std::span<const LathePassed> arguments,
                     LathePassed& result);

}  // namespace lathe::tir
