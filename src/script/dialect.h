// A dialect: the script's side of one IR. The caller of print and parse passes the dialects; this room knows none.
#pragma once

#include <span>

#include "ir/function.h"
#include "script/document.h"
#include "script/options.h"
#include "script/scope.h"

namespace lathe::script {

class Dialect {
 public:
  virtual ~Dialect() = default;

  // ---- printing ----
  virtual bool owns(const ir::BaseFunc& function) const = 0;
  // The function as a `def` with its decorator, under `name`.
  virtual void print_function(const std::string& name, const ir::BaseFunc& function, Lines& lines,
                              const PrintOptions& options) const = 0;
  // A node of this dialect alone (a statement, a graph's expression), or nothing.
  virtual std::optional<std::string> print_fragment(const ir::NodeRef& node, const PrintOptions& options) const = 0;

  // ---- reading ----
  virtual std::string_view name() const = 0;                 // "tir": what scripts import
  virtual bool reads(std::string_view decorator) const = 0;  // "prim_func"
  // First, all functions of a text are declared; what this gives is their signature, in `context.signatures`.
  virtual ir::Value declare(Context& context, const syntax::Stmt& def) const = 0;
  virtual ir::BaseFunc read_function(Context& context, const syntax::Stmt& def) const = 0;
};

using Dialects = std::span<const Dialect* const>;

}  // namespace lathe::script
