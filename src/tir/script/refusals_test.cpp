// What scripts of tensor programs are refused for: the code, the place and the sentence.
#include <gtest/gtest.h>

#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

const script::Dialect* const tir_only[] = {&script_dialect()};

// "code place: message" of the first diagnostic, without the quoted line.
std::string first_refusal(const std::string& text) {
  const auto module = script::parse({"f.py", text}, tir_only);
  if (module.ok()) return "accepted";
  const support::Diagnostic& d = module.diagnostics()[0];
  const std::string rendered = support::render(d);
  return std::string(d.code.name) + " " + rendered.substr(0, rendered.find('\n'));
}

// A function of A, 8 floats, B, 4 by 4 floats, and n, whose body, indented by four, starts in line 3.
std::string function_of(const std::string& body) {
  return "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((4, 4), \"float32\"), n: T.int32):\n" + body;
}

struct Row {
  std::string text, refusal;
};

void expect_refused(const std::vector<Row>& rows) {
  for (const auto& [text, refusal] : rows) EXPECT_EQ(first_refusal(text), refusal) << text;
}
void expect_bodies_refused(const std::vector<Row>& rows) {
  for (const auto& [body, refusal] : rows) EXPECT_EQ(first_refusal(function_of(body)), refusal) << body;
}

TEST(tir_script_refusals, of_characters_and_words) {
  expect_bodies_refused({
      {"    A[0] = 1.0 +\n", "script-syntax f.py:3:17: expected an expression, found the end of the line"},
      {"    A[0] = (1.0]\n", "script-syntax f.py:3:16: ']' does not close '('"},
      {"    A[0] = 1.0)\n", "script-syntax f.py:3:15: ')' closes nothing"},
      {"    A[0] = 'abc\n", "script-syntax f.py:3:12: this string is never closed"},
      {"    A[0] = $\n", "script-syntax f.py:3:12: '$' is no part of a script"},
      {"    A[0] = \x01\n", "script-syntax f.py:3:12: a byte of value 1 is no part of a script"},
      {"    A[0] = 3x\n", "script-syntax f.py:3:12: a number runs into a name"},
      {"    A[0] = '\\x4'\n", "script-syntax f.py:3:13: an escape takes 2 hexadecimal digits here"},
      {"        A[0] = 1.0\n      A[1] = 1.0\n",
       "script-syntax f.py:4:1: this line's indentation matches no line above it"},
      {"    for i in range(4):\n    A[0] = 1.0\n", "script-syntax f.py:4:5: expected an indented suite, found 'A'"},
      {"    f() = 1.0\n", "script-syntax f.py:3:5: this cannot be assigned to"},
      {"    T.evaluate(value=0, 1)\n", "script-syntax f.py:3:25: an argument by position follows one by name"},
      {"    A[0] = 2j\n", "script-not-in-scripts f.py:3:12: scripts have no complex numbers"},
      {"    A[0] = await n\n", "script-not-in-scripts f.py:3:12: scripts have no 'await'"},
      {"    global n\n", "script-not-in-scripts f.py:3:5: scripts have no 'global' statement"},
      {"    for i in range(4):\n        A[0] = 1.0\n    else:\n        A[0] = 1.0\n",
       "script-not-in-scripts f.py:3:5: loops of scripts have no 'else'"},
  });
}

TEST(tir_script_refusals, of_nesting) {
  std::string loops;
  for (size_t depth = 1; depth <= 600; ++depth) loops += std::string(depth, ' ') + "if n < 1:\n";
  loops += std::string(601, ' ') + "A[0] = 1.0\n";
  expect_bodies_refused({
      {"    A[0] = " + std::string(600, '(') + "1" + std::string(600, ')') + "\n",
       "script-too-deep f.py:3:511: the text is nested more than 500 levels deep"},
      {"    A[0] = " + std::string(600, '-') + "1\n",
       "script-too-deep f.py:3:510: the text is nested more than 500 levels deep"},
      {loops, "script-too-deep f.py:252:254: the text is nested more than 500 levels deep"},
  });
}

TEST(tir_script_refusals, of_numbers) {
  expect_bodies_refused({
      {"    T.evaluate(T.int64(9223372036854775808))\n",
       "script-number-too-large f.py:3:24: 9223372036854775808 does not fit in 64 bits with a sign"},
      {"    T.evaluate(T.int8(128))\n", "script-number-too-large f.py:3:23: 128 does not fit in int8"},
      {"    T.evaluate(10 ** 30)\n", "script-number-too-large f.py:3:16: the result is no integer of 64 bits"},
      {"    T.evaluate(4611686018427387904 * 4)\n",
       "script-number-too-large f.py:3:16: the result is no integer of 64 bits"},
      {"    T.evaluate(0x1g)\n", "script-syntax f.py:3:16: '0x1g' is no number"},
  });
}

TEST(tir_script_refusals, of_names) {
  expect_bodies_refused({
      {"    A[0] = missing\n", "script-unknown-name f.py:3:12: 'missing' is not defined"},
      {"    A[0] = T.nothing(1.0)\n", "script-unknown-function f.py:3:12: there is no 'T.nothing' in an expression"},
      {"    A[0] = A.nothing\n", "script-unknown-function f.py:3:12: a buffer has no 'nothing'"},
      {"    A[0] = n.nothing\n", "script-unknown-function f.py:3:12: a scalar expression has no 'nothing'"},
      {"    for i in T.sideways(4):\n        A[0] = 1.0\n",
       "script-unknown-function f.py:3:14: 'T.sideways' is no loop"},
      {"    T.evaluate(missing(1))\n", "script-unknown-name f.py:3:16: 'missing' is not defined"},
      {"    A[0] = [x for x in n]\n",
       "script-needs-python f.py:3:12: `[x for x in n]` must be evaluated by Python, and this text has none around it"},
      {"    A[0] = T\n", "script-wrong-type f.py:3:12: 'T' is a module, not a value"},
  });
}

TEST(tir_script_refusals, of_types) {
  expect_bodies_refused({
      {"    A[0] = 'text'\n", "script-wrong-type f.py:3:12: expected a scalar expression, found a string"},
      {"    A[0] = A\n", "script-wrong-type f.py:3:12: expected a scalar expression, found the buffer 'A'"},
      {"    A[0] = n\n", "script-dtype-mismatch f.py:3:12: the value stored into 'A' is int32, not float32"},
      {"    A[1.5] = 1.0\n", "script-dtype-mismatch f.py:3:7: an index is an integer, not float32"},
      {"    A[0] = A[0] + n\n", "script-dtype-mismatch f.py:3:12: operands of float32 and int32"},
      {"    T.evaluate(n / 2)\n", "script-dtype-mismatch f.py:3:16: '/' of int32 does not say how to round"},
      {"    if n:\n        A[0] = 1.0\n", "script-dtype-mismatch f.py:3:8: a condition is bool, not int32"},
      {"    T.evaluate(not n)\n", "script-dtype-mismatch f.py:3:20: 'not' takes bool, not int32"},
      {"    C = T.alloc_buffer((4,), 'float33')\n", "script-wrong-type f.py:3:30: there is no dtype 'float33'"},
      {"    C = T.alloc_buffer(4.5, 'float32')\n", "script-wrong-type f.py:3:24: a shape takes a tuple, not a float"},
      {"    T.evaluate(T.Select(n, 1, 2))\n", "script-dtype-mismatch f.py:3:25: a condition is bool, not int32"},
      {"    T.func_attr(3)\n", "script-wrong-type f.py:3:17: attributes are a dict, not an integer"},
      {"    C = T.match_buffer(A, 3, data=4)\n",
       "script-misplaced f.py:3:9: T.match_buffer of a region stands inside a block"},
      {"    T.buffer_store(3, 1.0, [0])\n",
       "script-wrong-type f.py:3:20: T.buffer_store takes a buffer, not an integer"},
      {"    T.evaluate(n[0])\n", "script-wrong-type f.py:3:16: a scalar expression has no items"},
  });
}

TEST(tir_script_refusals, of_arguments) {
  expect_bodies_refused({
      {"    A[0, 1] = 1.0\n", "script-wrong-arguments f.py:3:7: buffer 'A' has 1 dimensions, not 2"},
      {"    T.evaluate(A[0, 1])\n", "script-wrong-arguments f.py:3:18: buffer 'A' has 1 dimensions, not 2"},
      {"    T.evaluate()\n", "script-wrong-arguments f.py:3:5: argument 'value' is missing"},
      {"    T.evaluate(1, 2)\n", "script-wrong-arguments f.py:3:19: at most 1 arguments are taken by position, not 2"},
      {"    T.evaluate(1, value=2)\n", "script-wrong-arguments f.py:3:25: 'value' is given twice"},
      {"    T.evaluate(colour=2)\n", "script-wrong-arguments f.py:3:23: there is no argument 'colour' here"},
      {"    T.evaluate(*n)\n", "script-wrong-arguments f.py:3:16: arguments are written out here, one by one"},
      {"    T.evaluate(T.exp(1.0, 2.0))\n", "script-wrong-arguments f.py:3:16: T.exp takes 1 arguments, not 2"},
      {"    T.evaluate(T.Ramp(0, 1, 0))\n", "script-wrong-arguments f.py:3:29: a vector has 1 to 65535 lanes, not 0"},
      {"    with T.block():\n        T.reads(A[0:4:2])\n", "script-wrong-arguments f.py:4:23: a region has no step"},
      {"    T.evaluate((1, 2)[5])\n", "script-wrong-arguments f.py:3:23: item 5 of 2"},
      {"    for i, j in T.grid(4):\n        A[0] = 1.0\n",
       "script-wrong-arguments f.py:3:9: 2 variables for 1 extents"},
      {"    C = T.match_buffer(missing, (8,), 'float32')\n", "script-unknown-name f.py:3:24: 'missing' is not defined"},
      {"    C = T.match_buffer(n, (8,), 'float32')\n    D = T.match_buffer(n, (8,), 'float32')\n",
       "script-defined-twice f.py:4:24: 'n' is matched twice"},
  });
}

TEST(tir_script_refusals, of_statements_out_of_place) {
  expect_bodies_refused({
      {"    n\n", "script-misplaced f.py:3:5: this value is not used"},
      {"    import tvm\n", "script-misplaced f.py:3:5: imports stand at the top of the text"},
      {"    def g():\n        pass\n", "script-misplaced f.py:3:5: a tensor function holds no other definitions"},
      {"    return\n    A[0] = 1.0\n", "script-misplaced f.py:3:5: a tensor function returns at its end only"},
      {"    A[0], A[1] = 1.0\n", "script-wrong-type f.py:3:18: the targets take a tuple of 2"},
      {"    A[0] = A[1] = 1.0\n", "script-misplaced f.py:3:5: one target is assigned at a time"},
      {"    n += 1\n", "script-misplaced f.py:3:5: '+=' changes an element of a buffer only"},
      {"    T.allocate([4], 'float32')\n", "script-misplaced f.py:3:5: the result of this has no name"},
      {"    T.reads(A[0])\n", "script-misplaced f.py:3:5: the declaration of a region stands inside a block"},
      {"    for i in n:\n        A[0] = 1.0\n",
       "script-misplaced f.py:3:14: a loop runs over range, T.grid, T.serial, T.parallel, T.vectorized, T.unroll or "
       "T.thread_binding"},
      {"    for A[0] in range(3):\n        A[0] = 1.0\n", "script-misplaced f.py:3:11: a loop's variable is a name"},
      {"    with T.block() as b:\n        A[0] = 1.0\n",
       "script-misplaced f.py:3:23: a block binds its variables by T.axis"},
      {"    with n:\n        A[0] = 1.0\n", "script-misplaced f.py:3:10: 'with' has no meaning for `n` here"},
      {"    with T.block():\n        T.func_attr({})\n",
       "script-misplaced f.py:4:9: T.func_attr stands at the top of a function"},
      {"    with T.block():\n        T.reads(A[0])\n        T.reads(A[0])\n",
       "script-defined-twice f.py:5:9: the block's regions are declared already"},
      {"    with T.block():\n        T.where(n < 1)\n        T.where(n < 1)\n",
       "script-defined-twice f.py:5:9: the block has a condition already"},
      {"    with T.block():\n        with T.init():\n            A[0] = 1.0\n        with T.init():\n            A[0] "
       "= "
       "1.0\n",
       "script-defined-twice f.py:6:14: the block has an init already"},
      {"    with T.block():\n        v = T.axis.sideways(4, n)\n",
       "script-unknown-function f.py:4:13: there is no axis of kind 'sideways'"},
      {"    with T.block():\n        v = T.axis.remap('SS', [n])\n",
       "script-wrong-arguments f.py:4:13: 1 variables, 2 letters and 1 loops"},
  });
}

TEST(tir_script_refusals, of_whole_texts) {
  const std::string function = "@T.prim_func\ndef f(x: T.int32):\n    T.evaluate(x)\n";
  expect_refused({
      {"", "script-no-function f.py:1:1: the text has no function and no module"},
      {"import tvm\n", "script-no-function f.py:1:1: the text has no function and no module"},
      {"x = 3\n", "script-misplaced f.py:1:1: this statement has no meaning in a script"},
      {"# lathe script 99\n" + function,
       "script-version f.py:1:1: this text is of another version of the form than 1, which this Lathe reads"},
      {"# lathe script abc\n" + function,
       "script-version f.py:1:1: this text is of another version of the form than 1, which this Lathe reads"},
      {"def f():\n    pass\n", "script-misplaced f.py:1:1: function 'f' has no decorator of a dialect"},
      {"class M:\n    pass\n", "script-misplaced f.py:1:1: class 'M' is not decorated as a module"},
      {"@I.ir_module\nclass M:\n    pass\n@I.ir_module\nclass N:\n    pass\n",
       "script-misplaced f.py:4:1: a text holds one module"},
      {function + function, "script-defined-twice f.py:4:1: function 'f' is defined twice"},
      {"@T.prim_func\ndef f(x: T.int32, x: T.int32):\n    T.evaluate(x)\n",
       "script-defined-twice f.py:2:19: 'x' is defined twice"},
      {"@T.prim_func\ndef f(x: 3):\n    T.evaluate(x)\n",
       "script-wrong-type f.py:2:10: a parameter takes a dtype, not an integer"},
      {"@T.prim_func\ndef f(*x):\n    T.evaluate(x)\n",
       "script-not-in-scripts f.py:2:7: functions of scripts take plain parameters only"},
      {"@T.prim_func\n3\n", "script-syntax f.py:2:1: expected 'def' or 'class' after a decorator, found '3'"},
  });
  const auto two =
      script::parse_function({"f.py", function + "@T.prim_func\ndef g(x: T.int32):\n    T.evaluate(x)\n"}, tir_only);
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.diagnostics()[0].code.name, "script-no-function");
  EXPECT_EQ(two.diagnostics()[0].message, "f.py has 2 functions, not one");
}

TEST(tir_script_refusals, of_constants) {
  expect_bodies_refused({
      {"    c = T.allocate_const([1.0, 2.0], 'float32', shape=[3])\n",
       "script-wrong-arguments f.py:3:26: the lists of a constant differ from its shape"},
      {"    c = T.allocate_const([1.0, 'x'], 'float32', shape=[2])\n",
       "script-wrong-type f.py:3:26: an element of a constant of float32 is no number"},
      {"    c = T.allocate_const([1, 300], 'int8', shape=[2])\n",
       "script-number-too-large f.py:3:26: 300 does not fit in int8"},
      {"    c = T.allocate_const([1], 'handle', shape=[1])\n", "script-wrong-type f.py:3:31: no constant is of handle"},
      {"    c = T.allocate_const([[1], [1, 2]], 'int8', shape=[2, 1])\n",
       "script-wrong-arguments f.py:3:26: the lists of a constant differ in length or depth"},
      {"    c = T.allocate_const('content:abc', 'float32', shape=[1])\n",
       "script-missing-constant f.py:3:26: the data of constant abc is not beside this text"},
      {"    c = T.allocate_const('abc', 'float32', shape=[1])\n",
       "script-wrong-arguments f.py:3:26: 'abc' names no constant"},
      {"    c = T.allocate_const([1], 'int8', shape=[-1])\n",
       "script-wrong-arguments f.py:3:45: a constant's extents are numbers, not negative"},
  });
}

}  // namespace
}  // namespace lathe::tir
