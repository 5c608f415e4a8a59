// Reads the body of a plain Python function: loops and assignments, without blocks.
#pragma once

#include <set>

#include "script/expr_reader.h"
#include "te/loops/from_python.h"
#include "te/loops/infer_blocks.h"

namespace lathe::te {

bool reads_arrays(const ir::Expr& e);

class LoopReader : public script::ExprReader {
 public:
  LoopReader(script::Context& context, script::Scope& scope) : ExprReader(context, scope) {}
  // The names that Python code takes for granted: max, min, abs, len, range, float, int, math, numpy, np.
  static script::ByName<std::string> builtins();

  tir::Function function(const script::syntax::Stmt& def, const std::vector<ParameterSpec>& parameters);

 private:
  using Line = script::syntax::Stmt;
  using Lines = std::vector<const Line*>;

  // A local variable. One that a single line gives a value without reading arrays is that value; any other is an
  // element of an array over the loops around its suite.
  struct Local {
    std::vector<const Lines*> suites;  // that hold every line about it, outermost first
    int assignments = 0;
    bool updated = false;  // by `+=` and the like
    std::optional<ir::Value> value;
    ir::Buffer buffer;
    std::vector<ir::Expr> indices;
  };

  std::optional<ir::Value> other_path(const std::string& path, const Syntax& e) override;
  std::optional<ir::Value> other_call(const Syntax& e) override;
  // NumPy's meaning of an index, which counts from the end where it is negative. One that surely leaves the array in
  // an iteration that surely runs is refused.
  std::vector<ir::Expr> load_indices(const ir::Buffer& buffer, const Syntax& index) override;
  ir::Expr element_index(const ir::Buffer& buffer, size_t dimension, ir::Expr index, const Syntax& at);
  void refuse_outside(const ir::Buffer& buffer, size_t dimension, const ir::Expr& index, const Syntax& at);
  void refuse_outside_at(size_t number, bool counted, const ir::Buffer& buffer, size_t dimension, const ir::Expr& index,
                         const Syntax& at);
  [[noreturn]] void fail_outside(const ir::Buffer& buffer, size_t dimension, const ir::Expr& reached, const Syntax& at);
  // Second operands are evaluated only where Python does.
  ir::Value logical(const Syntax& e) override;
  ir::Value conditional(const Syntax& e) override;
  // What `read` reads where `condition` holds, or does not hold.
  template <class Read>
  auto where(const ir::Expr& condition, bool holds, Read&& read);

  // promote.cpp: NumPy's rules. A number of Python's takes the dtype of an array's element beside it.
  std::pair<ir::Expr, ir::Expr> converted(ir::Expr a, ir::Expr b) override;
  ir::DType float_literal() const override { return ir::DType::float_(64); }
  std::string converter() const override { return "np."; }
  ir::Expr quotient(const ir::Expr& a, const ir::Expr& b) override;
  bool is_python(const ir::Expr& e) const;
  bool reads_local(const ir::Expr& e) const;
  ir::Value extreme(bool largest, const Syntax& e);

  void take_parameters(const Line& def, const std::vector<ParameterSpec>& given);
  void find_locals(const Lines& body, std::vector<const Lines*>& path);
  void mention(const Syntax& e, const std::vector<const Lines*>& path);
  tir::Stmt suite(const Lines& lines);
  tir::Stmt line(const Line& s);
  tir::Stmt for_loop(const Line& s);
  tir::Stmt branch(const Line& s);
  tir::Stmt assign(const Line& s, const Syntax& target);
  tir::Stmt assign_tuple(const Line& s, const Syntax& targets);
  tir::Stmt assign_local(const Line& s, const Syntax& target, const ir::Value& value);
  tir::Stmt update(const Line& s);
  tir::Stmt store(const Line& s, const ir::Buffer& buffer, std::vector<ir::Expr> indices, const ir::Value& value);
  // `name = np.zeros(shape, dtype)` and its like; nothing when the value is no new array.
  std::optional<tir::Stmt> new_array(const Line& s, const Syntax& target);
  tir::Stmt fill(const Line& s, const ir::Buffer& array, const ir::Value& value);
  void make_buffer(Local& local, std::string_view name, ir::DType dtype);
  [[noreturn]] void refuse(const Line& s, std::string message, std::string help = "") const;
  template <class T>
  ir::Ref<T> placed(ir::Ref<T> node, const Line& s) const {
    return ir::with_origin(std::move(node), origin(s.begin, s.head_end));
  }

  std::unordered_map<std::string_view, Local> locals_;  // by their names in the text
  std::set<std::string_view> assigned_;                 // the locals that surely have a value here
  std::vector<ir::Buffer> arrays_;                      // allocated by the function
  arith::Domain loops_;                                 // around what is read now
  std::vector<ir::Expr> conditions_;                    // that hold there
  std::vector<ir::Expr> typed_;                         // what np.int32(…) and its like made
  std::unordered_map<const Lines*, size_t> depth_;      // how many loops are around a suite
  ir::DType float_ = ir::DType::float32();              // of literals that nothing else types
  std::vector<ir::Buffer> buffers_;                     // of parameters
  std::vector<ir::Var> scalars_;
  std::vector<ir::Var> params_;
  arith::Analyzer analyzer_;
};

}  // namespace lathe::te
