// What scripts of graph functions are refused for: the code, the place and the sentence.
#include <gtest/gtest.h>

#include "ops/operators.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::relax {
namespace {

// "code place: message" of the first diagnostic, without the quoted line, for a function of x, 2 by 3 floats, and a
// flag c, whose body, indented by four, starts in line 3.
std::string refusal_of_body(const std::string& body) {
  const auto graph = script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const std::string text = "@R.function\ndef f(x: R.Tensor((2, 3), \"float32\"), c: R.Tensor((), \"bool\")):\n" + body;
  const auto module = script::parse({"f.py", text}, dialects);
  if (module.ok()) return "accepted";
  const support::Diagnostic& d = module.diagnostics()[0];
  const std::string rendered = support::render(d);
  return std::string(d.code.name) + " " + rendered.substr(0, rendered.find('\n'));
}

struct Refusal {
  std::string body, expected;
};

void expect_graphs_refused(const std::vector<Refusal>& list) {
  for (const auto& [body, expected] : list) EXPECT_EQ(refusal_of_body(body), expected) << body;
}

TEST(relax_script_refusals, of_values) {
  expect_graphs_refused({
      {"    y = None\n    return x\n", "script-wrong-type f.py:3:9: None is not bound to a name"},
      {"    y = (x, None)\n    return x\n", "script-wrong-type f.py:3:13: a tuple holds no None"},
      {"    return missing\n", "script-unknown-name f.py:3:12: 'missing' is not defined"},
      {"    return R.nothing(x)\n", "script-unknown-function f.py:3:12: there is no operator 'nothing'"},
      {"    return R.add(x)\n", "script-wrong-arguments f.py:3:12: argument 'b' of add is missing"},
      {"    return R.add(x, x, x)\n", "script-wrong-arguments f.py:3:24: add takes fewer arguments"},
      {"    return R.sum(x, colour=1)\n", "relax-wrong-attribute f.py:3:12: there is no attribute 'colour'"},
      {"    return R.sum(x, axis='a')\n",
       "relax-wrong-attribute f.py:3:12: attribute 'axis' has a value of the wrong type"},
      {"    return R.sum(x, axis=[7])\n",
       "relax-axis-out-of-range f.py:3:12: axis 7 of sum is outside a tensor of rank 2"},
      {"    return R.matmul(x, x)\n",
       "relax-shape-mismatch f.py:3:12: matmul of float32[2, 3] with [2, 3]: the inner extents 3 and 2 differ"},
      {"    return R.call_tir(missing, (x,), out_sinfo=R.Tensor((2, 3), 'float32'))\n",
       "script-unknown-name f.py:3:23: 'missing' is not defined"},
      {"    return R.call_tir(f, (x,))\n", "script-wrong-arguments f.py:3:12: argument 'out_sinfo' is missing"},
      {"    return R.call_tir(f, (x,), out_sinfo=3)\n",
       "script-wrong-arguments f.py:3:42: the outputs are R.Tensor(…), or a shape with dtype="},
      {"    return R.call_tir_inplace(f, (x,), [1], R.Tensor((2, 3), 'float32'))\n",
       "relax-wrong-attribute f.py:3:12: inplace_indices of call_tir_inplace has 1, but there are 1 tensors"},
      {"    return R.call_tir_inplace(f, (x,), [0, -1], R.Tensor((2, 3), 'float32'))\n",
       "relax-wrong-attribute f.py:3:12: inplace_indices of call_tir_inplace has 2 entries for 1 outputs"},
      {"    return R.call_tir_inplace(f, (x,), [-1], R.Tensor((2, 3), 'float32'))\n",
       "relax-wrong-attribute f.py:3:12: call_tir_inplace updates nothing: inplace_indices has only -1"},
      {"    return R.call_tir_inplace(f, (x,), [0], R.Tensor((3, 2), 'float32'))\n",
       "relax-wrong-attribute f.py:3:12: output 0 of call_tir_inplace is float32[3, 2], but tensor 0 is float32[2, 3]"},
      {"    return R.call_tir_inplace(f, (x,), out_sinfo=R.Tensor((2, 3), 'float32'))\n",
       "script-wrong-arguments f.py:3:12: argument 'inplace_indices' is missing"},
      {"    return R.builtin.alloc_tensor(R.shape([2, 3]))\n",
       "relax-wrong-attribute f.py:3:12: alloc_tensor needs a dtype"},
      {"    return R.builtin.alloc_tensor(R.shape([2, 3]), 'float32', 1)\n",
       "relax-wrong-attribute f.py:3:12: alloc_tensor is of device 0 and scope \"global\" only"},
      {"    y: R.Tensor((2, 4), 'float32') = R.add(x, x)\n    return y\n",
       "script-annotation-differs f.py:3:8: the value is float32[2, 3], not float32[2, 4]"},
      {"    y: 3 = R.add(x, x)\n    return y\n",
       "script-wrong-type f.py:3:8: expected the type of a value, as R.Tensor((2, 3), \"float32\"), R.Tuple, R.Shape, "
       "R.Prim, R.Sequence, R.Optional, R.Callable or R.Object"},
      {"    y: R.Tensor((1.5,), 'float32') = R.add(x, x)\n    return y\n",
       "script-dtype-mismatch f.py:3:18: a dimension is an integer, not float32"},
      {"    y: R.Prim() = R.add(x, x)\n    return y\n",
       "script-wrong-arguments f.py:3:8: R.Prim takes a dtype or a value"},
      {"    return R.const([1.0, 2.0], 'float32')[0]\n",
       "relax-wrong-arguments f.py:3:12: an item is taken of a value that is not a tuple"},
  });
}

TEST(relax_script_refusals, of_statements) {
  expect_graphs_refused({
      {"    R.add(x, x)\n", "script-misplaced f.py:1:1: function 'f' returns nothing"},
      {"    pass\n", "script-misplaced f.py:1:1: function 'f' returns nothing"},
      {"    return x\n    return x\n", "script-misplaced f.py:4:5: nothing follows a function's return"},
      {"    return\n", "script-misplaced f.py:3:5: a graph function returns a value"},
      {"    return None\n", "script-wrong-type f.py:3:12: a graph function returns a value"},
      {"    x[0] = x\n    return x\n", "script-misplaced f.py:3:5: a name is assigned here"},
      {"    y = z = x\n    return x\n", "script-misplaced f.py:3:5: one target is assigned at a time"},
      {"    for i in x:\n        pass\n    return x\n",
       "script-misplaced f.py:3:5: this statement has no meaning in a graph function"},
      {"    x\n    return x\n", "script-misplaced f.py:3:5: this value is not used"},
      {"    R.output(x)\n    return x\n", "script-misplaced f.py:3:5: R.output stands at the end of a dataflow block"},
      {"    with x:\n        pass\n    return x\n",
       "script-misplaced f.py:3:10: `with` takes R.dataflow() in a graph function"},
      {"    with R.dataflow():\n        return x\n    return x\n",
       "script-misplaced f.py:4:9: a dataflow block has no return"},
      {"    with R.dataflow():\n        with R.dataflow():\n            pass\n    return x\n",
       "script-misplaced f.py:4:14: a dataflow block holds no other block"},
      {"    with R.dataflow():\n        R.output(missing)\n    return x\n",
       "script-unknown-name f.py:4:18: 'missing' is not bound in this block"},
      {"    with R.dataflow():\n        if c:\n            y = x\n        else:\n            y = x\n    return x\n",
       "script-misplaced f.py:4:9: a dataflow block has no control flow"},
      {"    if c:\n        y = R.add(x, x)\n    return x\n",
       "script-misplaced f.py:3:5: both branches assign the result, so both must be there"},
      {"    if c:\n        y = R.add(x, x)\n    else:\n        z = R.add(x, x)\n    return x\n",
       "script-misplaced f.py:3:5: the branches assign 'y' and 'z', not one name"},
      {"    if c:\n        y = R.add(x, x)\n    else:\n        y = R.sum(x)\n    return y\n",
       "script-annotation-differs f.py:3:5: the branches differ: the value is float32[], not float32[2, 3]"},
      {"    if c:\n        return x\n    else:\n        y = R.sum(x)\n    return y\n",
       "script-misplaced f.py:4:9: a branch ends with an assignment of its value"},
  });
}

}  // namespace
}  // namespace lathe::relax
