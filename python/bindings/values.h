// Values of any kind across the border: sequences are lists, tuples are tuples, an optional without a value is None.
#pragma once

#include "abi/lathe.h"
#include "bindings.h"
#include "driver/value.h"

namespace lathe::python {

using driver::Value;

// What an input of that kind is given as; tensors are copied. Raises TypeError for what is of another kind, and what
// `refused` raises where the runtime makes no value of it.
Value to_value(nb::handle given, int32_t kind, const std::string& name, void (*refused)());
// Tensors become arrays over the value's memory.
nb::object from_value(Value value);

}  // namespace lathe::python
