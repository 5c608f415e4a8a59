// The diagnostics of the ONNX importer.
#pragma once

#include "support/diagnostic.h"

namespace lathe::onnx::codes {

// The file.
inline constexpr support::Code cannot_read{"onnx-cannot-read"};      // absent, a folder, unreadable
inline constexpr support::Code damaged{"onnx-damaged"};              // not a model, truncated, inconsistent bytes
inline constexpr support::Code too_deep{"onnx-too-deep"};            // nested past what any model needs
inline constexpr support::Code too_large{"onnx-too-large"};          // more parts, or more bytes, than can be
inline constexpr support::Code external_data{"onnx-external-data"};  // a path, offset or length that is refused
// The model.
inline constexpr support::Code unsupported_opset{"onnx-unsupported-opset"};
inline constexpr support::Code unknown_operator{"onnx-unknown-operator"};
inline constexpr support::Code wrong_graph{"onnx-wrong-graph"};  // inputs and outputs of the whole graph
inline constexpr support::Code duplicate_name{"onnx-duplicate-name"};
inline constexpr support::Code missing_value{"onnx-missing-value"};
inline constexpr support::Code cycle{"onnx-cycle"};
inline constexpr support::Code wrong_tensor{"onnx-wrong-tensor"};  // an initializer's dims, type or payload
inline constexpr support::Code wrong_shape{"onnx-wrong-shape"};    // negative or enormous dimensions
inline constexpr support::Code unknown_dim{"onnx-unknown-dim"};    // a dimension fixed that no input has
// Nodes.
inline constexpr support::Code wrong_node{"onnx-wrong-node"};  // counts of inputs and outputs
inline constexpr support::Code wrong_attribute{"onnx-wrong-attribute"};
inline constexpr support::Code not_constant{"onnx-not-constant"};  // a value that must be known when compiling
inline constexpr support::Code unsupported{"onnx-unsupported"};    // a legal form that Lathe does not compile
// Writing.
inline constexpr support::Code not_exported{"onnx-not-exported"};  // what has no form in ONNX

}  // namespace lathe::onnx::codes
