// Ensembles of decision trees (ai.onnx.ml): every row goes down every tree by one program, whose tables are the nodes.
#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/tables.h"
#include "ops/build/statements.h"

namespace lathe::onnx::operators {

namespace build = ops::build;

namespace {

enum TreeMode : int64_t { at_most, below, at_least_as, above, equal_to, other_than, member };

// Nodes of all trees; a place from `nodes()` on is a leaf, counted from there.
struct Forest {
  std::vector<int64_t> features, modes, missing, if_true, if_false, roots, targets;
  std::vector<double> splits, weights;
  int64_t depth = 0;  // nodes on the longest way from a root to a leaf
  int64_t nodes() const { return static_cast<int64_t>(features.size()); }
};

std::vector<int64_t> tree_list(NodeImport& c, const std::string& name, size_t count) {
  const auto given = c.attributes.integers(name);
  if (!given || given->size() != count)
    c.fail(codes::wrong_attribute, "the attribute '" + name + "' has " + std::to_string(given ? given->size() : 0) +
                                       " values, not " + std::to_string(count));
  return *given;
}

std::vector<double> tree_numbers(NodeImport& c, const std::string& name, std::optional<size_t> count) {
  const ir::TensorData data = c.attributes.tensor(name);
  std::vector<double> values;
  for (int64_t i = 0; data && i < data->elements(); ++i)
    values.push_back(data->dtype.is_floating() ? ir::float_at(*data, i) : static_cast<double>(ir::int_at(*data, i)));
  if (count && values.size() != *count)
    c.fail(codes::wrong_attribute, "the attribute '" + name + "' has " + std::to_string(values.size()) +
                                       " values, not " + std::to_string(*count));
  return values;
}

// A node that asks for a member of a set becomes one for each member, each the false branch of the one before.
void split_memberships(NodeImport& c, Forest& forest) {
  const std::vector<double> members = tree_numbers(c, "membership_values", std::nullopt);
  size_t next = 0;
  const auto given = static_cast<size_t>(forest.nodes());
  for (size_t node = 0; node < given; ++node) {
    if (forest.modes[node] != TreeMode::member) continue;
    std::vector<double> set;
    while (next < members.size() && !std::isnan(members[next])) set.push_back(members[next++]);
    if (next++ >= members.size())
      c.fail(codes::wrong_attribute,
             "the attribute 'membership_values' ends before the set of the node " + std::to_string(node));
    if (set.empty()) set.push_back(std::numeric_limits<double>::quiet_NaN());  // which nothing equals
    const int64_t otherwise = forest.if_false[node];
    size_t at = node;
    for (size_t k = 0; k < set.size(); ++k) {
      if (k > 0) {
        forest.if_false[at] = forest.nodes();
        at = static_cast<size_t>(forest.nodes());
        forest.features.push_back(forest.features[node]);
        forest.missing.push_back(forest.missing[node]);
        forest.if_true.push_back(forest.if_true[node]);
        forest.modes.push_back(TreeMode::equal_to);
        forest.splits.push_back(0);
        forest.if_false.push_back(0);
      }
      forest.modes[at] = TreeMode::equal_to;
      forest.splits[at] = set[k];
      forest.if_false[at] = otherwise;
    }
  }
  if (next < members.size())
    c.fail(codes::wrong_attribute, "the attribute 'membership_values' has more sets than nodes that ask for one");
}

// The longest way down; refuses what has no end. `-1 - leaf` stands for a leaf.
void measure_depth(NodeImport& c, Forest& forest) {
  enum : uint8_t { unseen, open, done };
  std::vector<uint8_t> state(forest.features.size(), unseen);
  std::vector<int64_t> depth(forest.features.size(), 0), stack;
  for (const int64_t root : forest.roots) {
    stack.push_back(root);
    while (!stack.empty()) {
      const auto at = static_cast<size_t>(stack.back());
      const bool is_new = state[at] == unseen;
      if (state[at] == done) {
        stack.pop_back();
        continue;
      }
      state[at] = is_new ? open : done;
      depth[at] = 1;
      for (const int64_t next : {forest.if_true[at], forest.if_false[at]}) {
        if (next < 0) continue;
        const auto below = static_cast<size_t>(next);
        if (is_new && state[below] == open)
          c.fail(codes::wrong_attribute, "the node " + std::to_string(next) + " of the trees is below itself");
        if (is_new && state[below] == unseen) stack.push_back(next);
        depth[at] = std::max(depth[at], depth[below] + 1);
      }
      if (!is_new) stack.pop_back();
    }
    forest.depth = std::max(forest.depth, depth[static_cast<size_t>(root)]);
  }
}

Forest read_forest(NodeImport& c, int64_t columns) {
  Forest forest;
  const auto features = c.attributes.integers("nodes_featureids");
  if (!features || features->empty()) c.fail(codes::wrong_attribute, "the trees have no nodes");
  forest.features = *features;
  const size_t count = features->size();
  for (const double mode : tree_numbers(c, "nodes_modes", count)) forest.modes.push_back(static_cast<int64_t>(mode));
  forest.splits = tree_numbers(c, "nodes_splits", count);
  forest.missing = c.attributes.has("nodes_missing_value_tracks_true")
                       ? tree_list(c, "nodes_missing_value_tracks_true", count)
                       : std::vector<int64_t>(count, 0);
  c.attributes.ignore("nodes_hitrates");
  const auto targets = c.attributes.integers("leaf_targetids");
  if (!targets || targets->empty()) c.fail(codes::wrong_attribute, "the trees have no leaves");
  forest.targets = *targets;
  forest.weights = tree_numbers(c, "leaf_weights", targets->size());
  for (const int64_t target : forest.targets)
    if (target < 0 || target >= columns)
      c.fail(codes::wrong_attribute,
             "a leaf adds to the target " + std::to_string(target) + " of " + std::to_string(columns));
  const auto branches = [&](const std::string& ids, const std::string& leaves) {
    std::vector<int64_t> next = tree_list(c, ids, count);
    const std::vector<int64_t> is_leaf = tree_list(c, leaves, count);
    for (size_t i = 0; i < count; ++i) {
      const size_t most = is_leaf[i] ? targets->size() : count;
      if (next[i] < 0 || next[i] >= static_cast<int64_t>(most))
        c.fail(codes::wrong_attribute, "the attribute '" + ids + "' names " + (is_leaf[i] ? "the leaf " : "the node ") +
                                           std::to_string(next[i]) + " of " + std::to_string(most));
      if (is_leaf[i]) next[i] = -1 - next[i];
    }
    return next;
  };
  forest.if_true = branches("nodes_truenodeids", "nodes_trueleafs");
  forest.if_false = branches("nodes_falsenodeids", "nodes_falseleafs");
  forest.roots = c.attributes.integers("tree_roots").value_or(std::vector<int64_t>{});
  if (forest.roots.empty()) c.fail(codes::wrong_attribute, "the attribute 'tree_roots' names no tree");
  for (const int64_t root : forest.roots)
    if (root < 0 || root >= static_cast<int64_t>(count))
      c.fail(codes::wrong_attribute,
             "a tree's root is the node " + std::to_string(root) + " of " + std::to_string(count));
  for (size_t i = 0; i < count; ++i)
    if (forest.modes[i] < TreeMode::at_most || forest.modes[i] > TreeMode::member || forest.features[i] < 0)
      c.fail(codes::wrong_attribute, "the node " + std::to_string(i) + " of the trees has the mode " +
                                         std::to_string(forest.modes[i]) + " and the feature " +
                                         std::to_string(forest.features[i]));
  split_memberships(c, forest);
  measure_depth(c, forest);
  for (std::vector<int64_t>* next : {&forest.if_true, &forest.if_false})
    for (int64_t& each : *next)
      if (each < 0) each = forest.nodes() - 1 - each;
  return forest;
}

ir::Expr holds(const ir::Expr& mode, const ir::Expr& x, const ir::Expr& split) {
  const auto is = [&](TreeMode wanted) { return ir::eq(mode, ir::int64(wanted)); };
  ir::Expr result = ir::ne(x, split);
  result = ir::select(is(TreeMode::equal_to), ir::eq(x, split), result);
  result = ir::select(is(TreeMode::above), x > split, result);
  result = ir::select(is(TreeMode::at_least_as), x >= split, result);
  result = ir::select(is(TreeMode::below), x < split, result);
  return ir::select(is(TreeMode::at_most), x <= split, result);
}

// The leaf that each row reaches in each tree: [rows, trees].
Expr reached_leaves(NodeImport& c, const Expr& x, const Forest& forest) {
  const auto table = [](const std::vector<int64_t>& values) {
    return relax::constant(ir::tensor_of<int64_t>(DType::int64(), {static_cast<int64_t>(values.size())}, values));
  };
  const Expr splits = c.cast(relax::constant(ir::tensor_of<double>(DType::float_(64), {forest.nodes()}, forest.splits)),
                             build::dtype_of(x));
  const Shape shape{build::shape_of(x)[0], ir::int64(static_cast<int64_t>(forest.roots.size()))};
  const ir::Expr nodes = ir::int64(forest.nodes());
  const auto make = [&](const build::Buffers& in, const build::Buffers& out) {
    const auto regions = [&](const std::vector<ir::Expr>& at) {
      build::Regions r;
      r.reads.push_back(build::part_of_buffer(in[0], {at[0], std::nullopt}));
      for (size_t k = 1; k < in.size(); ++k) r.reads.push_back(build::part_of_buffer(in[k], {}));
      r.reads.push_back(tir::point_region(out[0], at));
      r.writes.push_back(tir::point_region(out[0], at));
      return r;
    };
    return build::block_over(shape, "reach_leaves", regions, [&](const std::vector<ir::Expr>& at) {
      const tir::Stmt begin = build::store(out[0], ir::load(in[7], {at[1]}), at);
      const tir::Stmt down = build::loops_over({ir::int64(forest.depth)}, [&](const std::vector<ir::Expr>&) {
        const ir::Expr here = ir::load(out[0], at), node = ir::min(here, nodes - 1);
        const auto of_node = [&](size_t k) { return ir::load(in[k], {node}); };
        const ir::Expr value = ir::load(in[0], {at[0], of_node(1)});
        const ir::Expr is_missing = ir::logical_and(ir::ne(value, value), ir::ne(of_node(3), ir::int64(0)));
        const ir::Expr goes = ir::logical_or(holds(of_node(2), value, of_node(6)), is_missing);
        return build::store(out[0], ir::select(here < nodes, ir::select(goes, of_node(4), of_node(5)), here), at);
      });
      return tir::seq({begin, down});
    });
  };
  const auto tensors = [&](const std::vector<te::Tensor>& in) {
    return te::extern_op({{shape, DType::int64()}}, in, make, "reached_leaves");
  };
  return c.builder()
      .call_te("reached_leaves",
               {x, table(forest.features), table(forest.modes), table(forest.missing), table(forest.if_true),
                table(forest.if_false), splits, table(forest.roots)},
               tensors)
      .value_or_throw();
}

// A target that no tree adds to is 0 in sums, and the largest or smallest number where the least or largest is asked.
void tree_ensemble(NodeImport& c) {
  const int64_t columns = c.attributes.integer("n_targets"), how = c.attributes.integer("aggregate_function", 1);
  const int64_t post = c.attributes.integer("post_transform", 0);
  if (columns < 1 || columns > std::numeric_limits<int32_t>::max() || how < 0 || how > 3)
    c.fail(codes::wrong_attribute, std::to_string(columns) + " targets aggregated by " + std::to_string(how));
  if (post < 0 || post > 2)
    c.fail(codes::unsupported,
           "the transform " + std::to_string(post) + " of the scores is not one that Lathe compiles");
  if (c.rank(0) != 2)
    c.fail(codes::wrong_node, "the features have " + std::to_string(c.rank(0)) + " dimensions, not 2");
  const Forest forest = read_forest(c, columns);
  const int64_t widest = *std::max_element(forest.features.begin(), forest.features.end()) + 1;
  const ir::Expr features = c.shape(0)[1];
  build::expect_equal(c.builder(), relax::simplified(ir::max(features, ir::int64(widest))), features);
  const DType dtype = c.dtype(0), wide = relax::accumulation_dtype(dtype);
  const Expr leaves = reached_leaves(c, c.input(0), forest);
  const auto leaf_count = static_cast<int64_t>(forest.targets.size());
  const Expr targets = relax::constant(ir::tensor_of<int64_t>(DType::int64(), {leaf_count}, forest.targets));
  const Expr weights =
      c.cast(relax::constant(ir::tensor_of<double>(DType::float_(64), {leaf_count}, forest.weights)), dtype);
  const ir::Expr most = ir::max_value(dtype), least = ir::min_value(dtype);
  const ir::Expr none = ir::cast(wide, how < 2 ? ir::constant(dtype, 0) : how == 2 ? most : least);
  const auto make = [&](const std::vector<te::Tensor>& in) {
    const te::IterVar t = te::reduce_axis(ir::int64(0), ir::int64(static_cast<int64_t>(forest.roots.size())), "t");
    const te::Tensor scores = te::compute(
        {in[0].shape()[0], ir::int64(columns)},
        [&](const std::vector<ir::Expr>& i) {
          const ir::Expr leaf = ir::max(in[0]({i[0], t->var}) - forest.nodes(), ir::int64(0));
          const ir::Expr weight = ir::select(ir::eq(in[1]({leaf}), i[1]), ir::cast(wide, in[2]({leaf})), none);
          return how < 2 ? te::sum(weight, {t}) : how == 2 ? te::min(weight, {t}) : te::max(weight, {t});
        },
        in, "scores");
    const ir::Expr trees = ir::constant(wide, how == 0 ? static_cast<double>(forest.roots.size()) : 1.0);
    return std::vector{te::compute(
        {in[0].shape()[0], ir::int64(columns)},
        [&](const std::vector<ir::Expr>& i) { return ir::cast(dtype, ir::div(scores(i), trees)); }, {scores},
        "aggregated")};
  };
  Expr y = c.builder().call_te("tree_scores", {leaves, targets, weights}, make).value_or_throw();
  if (post == 1) y = c.call(ops::softmax, {y}, ir::make<ops::SoftmaxAttributes>(int64_t{1}));
  if (post == 2) y = c.call(ops::sigmoid, {y});
  c.set(y);
}

const OperatorRow tree_rows[] = {
    {"TreeEnsemble", {5}, 1, 1, 1, tree_ensemble, nullptr, "ai.onnx.ml"},
};

}  // namespace

Table trees() { return tree_rows; }

}  // namespace lathe::onnx::operators
