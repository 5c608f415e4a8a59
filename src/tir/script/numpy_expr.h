// Expressions of tensor programs as Python over NumPy: the numbers of the program's loops are integers of Python's,
// exact and without a width; everything else is a number of NumPy's of the very dtype, and a vector is an array of its
// lanes.
#pragma once

#include "script/document.h"
#include "script/names.h"
#include "tir/script/numpy_prelude.h"
#include "tir/stmt.h"

namespace lathe::tir {

[[noreturn]] void refuse_numpy(const NodeRef& at, std::string message);

class NumpyExpressions {
 public:
  // `lines` takes what has to stand before the statement: arrays over memory that has another name already.
  NumpyExpressions(script::Lines& lines, std::set<std::string_view>& used) : lines_(lines), used_(used) {}

  // What an integer of Python's may be; everything, where nothing is known.
  struct Interval {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  };

  // In a position where integers are exact: an index, an extent, a bound of a loop.
  script::Document exact(const Expr& e);
  // A value of its dtype, be it an integer of Python's that the dtype can hold.
  script::Document value(const Expr& e);
  // The same as a number of NumPy's.
  script::Document typed(const Expr& e);
  std::string element(const Buffer& b, const std::vector<Expr>& indices);
  std::vector<std::string> positions(const std::vector<Expr>& indices);

  // A name for the value that `e` has here, and its text; an integer of Python's where that is one.
  std::pair<std::string, std::string> define(const Var& v, const Expr& e);
  // A variable that holds an integer of Python's.
  std::string define_integer(const Var& v, Interval interval);
  // In a position where integers are exact, as an integer of Python's whatever it is made of.
  std::pair<std::string, Interval> whole(const Expr& e);
  std::string define_array(const Buffer& b);

  std::string array(const Buffer& b);
  std::string memory(const Var& data, const Buffer& used_by);
  std::string laid_out(const std::string& memory, const Buffer& b);
  std::string dtype(DType t, const NodeRef& at);
  std::string shape(const std::vector<Expr>& extents);
  std::string_view use(std::string_view helper) { return *used_.insert(helper).first; }

  script::Names names;

 private:
  struct Piece {
    script::Document text;
    bool plain = false;  // an integer of Python's
    Interval interval{};
  };
  Piece piece(const Expr& e);
  Piece integer(const IntImm& n);
  Piece arithmetic(const Expr& e, const Expr& a, const Expr& b);
  Piece binary(const Expr& e, Piece x, Piece y);
  Piece settled(const Expr& e, Piece p);
  script::Document widened(const Expr& e, const script::Document& text);
  script::Document narrowed(const Expr& e, const script::Document& text);
  void settle(const Expr& a, Piece& x, const Expr& b, Piece& y);
  Piece choose(const Expr& condition, const Expr& a, const Expr& b);
  script::Document logical(const Expr& a, const Expr& b, std::string_view word, std::string_view function,
                           script::Precedence precedence);
  script::Document typed(DType t, const std::string& text, const NodeRef& at);
  script::Document of(std::string_view function, const std::vector<Expr>& args);
  script::Document converted(const Cast& n);
  script::Document call(const Call& n);
  script::Document load(const BufferLoad& n);

  script::Lines& lines_;
  std::set<std::string_view>& used_;
  std::unordered_map<const VarNode*, Interval> plain_;
  bool exact_ = false;
};

}  // namespace lathe::tir
