// The edits that shrinking a model tries. Each changes the model in place and says whether it changed anything.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/result.h"

namespace lathe_onnx {
class ModelProto;
class NodeProto;
class TypeProto;
}  // namespace lathe_onnx

namespace lathe::onnx::shrink {

namespace schema = ::lathe_onnx;

// The types of tensors by name, where they are known.
using Types = std::map<std::string, schema::TypeProto>;

// Every tensor of the graph as an output: what tells their types.
schema::ModelProto with_every_output(const schema::ModelProto& model);
// The names that a node reads, those that its subgraphs take from around it included.
std::set<std::string> reads_of(const schema::NodeProto& node);

// Without what no output needs: nodes, inputs, initializers, functions, declared shapes, texts for people.
void prune(schema::ModelProto& model);
// Without the nodes [begin, end): what others read of them becomes an input of its type. Where they gave every output,
// what they read is given instead.
bool leave_out(schema::ModelProto& model, int begin, int end, const Types& types);
// What reads an output of the node reads this input of it instead, which has the same type.
bool bypass(schema::ModelProto& model, int node, int input, const Types& types);
// Without the outputs [begin, end).
bool drop_outputs(schema::ModelProto& model, int begin, int end);
bool drop_attribute(schema::ModelProto& model, int node, int attribute);

// The extents over 1 that inputs and initializers have, largest first, and the names of symbolic ones.
std::vector<int64_t> extents_of(const schema::ModelProto& model);
std::vector<std::string> symbols_of(const schema::ModelProto& model);
// This extent becomes smaller wherever it is one: in inputs, initializers, and integers that may be shapes.
bool shrink_extent(schema::ModelProto& model, int64_t from, int64_t to);
bool fix_symbol(schema::ModelProto& model, const std::string& name, int64_t extent);
// The initializer becomes a single 1 a element.
bool make_ones(schema::ModelProto& model, int initializer);

}  // namespace lathe::onnx::shrink
