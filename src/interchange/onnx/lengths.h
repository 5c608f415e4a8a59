// Lengths of a graph's inputs that the graph itself decides: of a vector of integers that a shape, or a number of
// parts, is read from, often only one length leads to results with as many dimensions as the graph declares. Then it is
// an input of that length, as if the model said so.
#pragma once

#include "interchange/onnx/import.h"
#include "interchange/onnx/read/model.h"
#include "support/function_ref.h"

namespace lathe::onnx {

// Whether it was converted with these options, to results of the declared ranks.
using Fits = support::function_ref<bool(const ImportOptions& options)>;

// For a graph that was refused with these diagnostics, since the number of some elements is not known: the options with
// the one length of the one input for which it fits. None where there is no such length, or more than one: then the
// diagnostics name them.
std::optional<ImportOptions> deduce_length(const schema::GraphProto& graph, const ImportOptions& options,
                                           support::Diagnostics& refused, Fits fits);

}  // namespace lathe::onnx
