// Calls between the tensor functions of a module: `cls.f(A, T.address_of(B[4]), n)`. Memory is passed by the address of
// its first element, numbers by value; nothing comes back but what the function stores.
#pragma once

#include "ir/pass.h"
#include "support/diagnostic.h"
#include "tir/stmt.h"

namespace lathe::tir {

// The name of the function that is called; null where the call is of an intrinsic alone.
const std::string* callee_of(const Call& call);

// The element whose address `argument` is; null where it is none.
const BufferLoad* passed_element(const Expr& argument);
// Whether that is the first element of its buffer, so that all of the buffer is passed.
bool passes_whole_buffer(const BufferLoad& element);

// A tensor that a registered function is given: T.tvm_stack_make_array of an element's address.
struct PassedArray {
  const BufferLoad* element;             // the first
  std::span<const Expr> shape, strides;  // no strides: rows without gaps
};
std::optional<PassedArray> passed_array(const Call& array);

// What is wrong with a call of a registered function (T.call_packed); empty where nothing is.
std::string wrong_registered_call(const Call& call);
// The name of a registered function that a statement calls; null where it calls none.
const std::string* calls_registered(const Stmt& s);

// What is wrong with the calls of the module: functions that are not there, arguments that do not fit, functions that
// call themselves in the end.
support::Diagnostics check_calls(const IRModule& module);

}  // namespace lathe::tir
