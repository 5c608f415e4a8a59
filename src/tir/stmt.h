// Statements of tensor programs (TensorIR): loops, blocks, stores. The meaning of each kind stands beside it.
#pragma once

#include "ir/build.h"
#include "ir/function.h"
#include "ir/tensor_data.h"

namespace lathe::tir {

using namespace ir;  // NOLINT: tir is the statement layer over ir's expressions

struct StmtNode : Node {
  static constexpr std::string_view family = "stmt";
  using family_type = StmtNode;
};
using Stmt = Ref<StmtNode>;

// Names a loop or block across rewrites; 0: not numbered yet. Outside structural equality.
using Id = uint64_t;

// `body` with `var` bound to `value`.
struct LetStmt : StmtNode {
  static constexpr std::string_view kind_name = "LetStmt";
  Var var;
  Expr value;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("var", &LetStmt::var, Role::define), field("value", &LetStmt::value),
                      field("body", &LetStmt::body)};
  }
};

// `body` under an annotation: `key` of `node` is `value`.
struct AttrStmt : StmtNode {
  static constexpr std::string_view kind_name = "AttrStmt";
  Value node;
  std::string key;
  Expr value;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("node", &AttrStmt::node), field("key", &AttrStmt::key), field("value", &AttrStmt::value),
                      field("body", &AttrStmt::body)};
  }
};

// Stops the program with `message` unless `condition` holds.
struct AssertStmt : StmtNode {
  static constexpr std::string_view kind_name = "AssertStmt";
  Expr condition;
  std::string message;
  static constexpr auto fields() {
    return std::tuple{field("condition", &AssertStmt::condition), field("message", &AssertStmt::message)};
  }
};

// buffer[indices] = value. A vector last index stores a vector; with a predicate (bool lanes), masked-off lanes are
// not written.
struct BufferStore : StmtNode {
  static constexpr std::string_view kind_name = "BufferStore";
  Buffer buffer;
  Expr value;
  std::vector<Expr> indices;
  Expr predicate;  // null: every lane
  static constexpr auto fields() {
    return std::tuple{field("buffer", &BufferStore::buffer), field("value", &BufferStore::value),
                      field("indices", &BufferStore::indices), optional_field("predicate", &BufferStore::predicate)};
  }
};

// Makes `buffer` available in `body`: with fresh memory (`data` null) or as a view of the memory at `data`.
// Uninitialised memory may not be read.
struct DeclBuffer : StmtNode {
  static constexpr std::string_view kind_name = "DeclBuffer";
  Buffer buffer;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &DeclBuffer::buffer, Role::define), field("body", &DeclBuffer::body)};
  }
};

// `body` with `buffer_var` the address of fresh memory of the product of `extents` elements (flat, after lowering).
struct Allocate : StmtNode {
  static constexpr std::string_view kind_name = "Allocate";
  Var buffer_var;
  DType dtype;
  std::vector<Expr> extents;
  std::string scope = "global";
  Stmt body;
  Attributes annotations;
  static constexpr auto fields() {
    return std::tuple{field("buffer_var", &Allocate::buffer_var, Role::define),
                      field("dtype", &Allocate::dtype),
                      field("extents", &Allocate::extents),
                      field("scope", &Allocate::scope),
                      field("body", &Allocate::body),
                      field("annotations", &Allocate::annotations)};
  }
};

// `body` with `buffer_var` the address of constant data.
struct AllocateConst : StmtNode {
  static constexpr std::string_view kind_name = "AllocateConst";
  Var buffer_var;
  TensorData data;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("buffer_var", &AllocateConst::buffer_var, Role::define),
                      field("data", &AllocateConst::data), field("body", &AllocateConst::body)};
  }
};

// The statements in order; never holds another sequence (see `seq`).
struct SeqStmt : StmtNode {
  static constexpr std::string_view kind_name = "SeqStmt";
  std::vector<Stmt> seq;
  static constexpr auto fields() { return std::tuple{field("seq", &SeqStmt::seq)}; }
};

struct IfThenElse : StmtNode {
  static constexpr std::string_view kind_name = "IfThenElse";
  Expr condition;
  Stmt then_case, else_case;  // else_case may be null
  static constexpr auto fields() {
    return std::tuple{field("condition", &IfThenElse::condition), field("then_case", &IfThenElse::then_case),
                      optional_field("else_case", &IfThenElse::else_case)};
  }
};

// Evaluates an expression for its effect. `Evaluate(0)` is the empty statement.
struct Evaluate : StmtNode {
  static constexpr std::string_view kind_name = "Evaluate";
  Expr value;
  static constexpr auto fields() { return std::tuple{field("value", &Evaluate::value)}; }
};

enum class ForKind : uint8_t {
  serial,
  parallel,        // iterations in any order, on any threads
  vectorized,      // iterations as lanes
  unrolled,        // constant extent; iterations written out
  thread_binding,  // iterations are the threads of a device axis
};

// Runs `body` with loop_var from min to min + extent - 1.
struct For : StmtNode {
  static constexpr std::string_view kind_name = "For";
  Var loop_var;
  Expr min, extent;
  ForKind kind = ForKind::serial;
  Stmt body;
  IterVar thread_binding;  // of kind thread_binding only
  Attributes annotations;
  Id id = 0;
  static constexpr auto fields() {
    return std::tuple{field("loop_var", &For::loop_var, Role::define),
                      field("min", &For::min),
                      field("extent", &For::extent),
                      field("kind", &For::kind),
                      field("body", &For::body),
                      optional_field("thread_binding", &For::thread_binding),
                      field("annotations", &For::annotations),
                      field("id", &For::id, Role::ignore)};
  }
};

struct While : StmtNode {
  static constexpr std::string_view kind_name = "While";
  Expr condition;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("condition", &While::condition), field("body", &While::body)};
  }
};

// A rectangular part of a buffer, one range a dimension.
struct BufferRegionNode : Node {
  static constexpr std::string_view family = "buffer_region";
  using family_type = BufferRegionNode;
  static constexpr std::string_view kind_name = "BufferRegion";
  Buffer buffer;
  std::vector<Range> region;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &BufferRegionNode::buffer), field("region", &BufferRegionNode::region)};
  }
};
using BufferRegion = Ref<BufferRegionNode>;

// `buffer` names the memory of `source` inside a block, with constraints on its layout.
struct MatchBufferRegionNode : Node {
  static constexpr std::string_view family = "match_buffer";
  using family_type = MatchBufferRegionNode;
  static constexpr std::string_view kind_name = "MatchBufferRegion";
  Buffer buffer;
  BufferRegion source;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &MatchBufferRegionNode::buffer, Role::define),
                      field("source", &MatchBufferRegionNode::source)};
  }
};
using MatchBufferRegion = Ref<MatchBufferRegionNode>;

// The unit of computation. One instance for each value of its iteration variables; `reads` and `writes` cover what an
// instance touches. `init` runs first in the instances where every reduce variable is at its minimum.
struct Block : StmtNode {
  static constexpr std::string_view kind_name = "Block";
  std::vector<IterVar> iter_vars;
  std::vector<BufferRegion> reads, writes;
  std::string name;
  Stmt body;
  Stmt init;  // may be null
  std::vector<Buffer> alloc_buffers;
  std::vector<MatchBufferRegion> match_buffers;
  Attributes annotations;
  Id id = 0;
  static constexpr auto fields() {
    return std::tuple{field("iter_vars", &Block::iter_vars),
                      field("alloc_buffers", &Block::alloc_buffers, Role::define),
                      field("match_buffers", &Block::match_buffers),
                      field("reads", &Block::reads),
                      field("writes", &Block::writes),
                      field("name", &Block::name),
                      optional_field("init", &Block::init),
                      field("body", &Block::body),
                      field("annotations", &Block::annotations),
                      field("id", &Block::id, Role::ignore)};
  }
};

// Runs the instance of `block` with its variables bound to `iter_values`, where `predicate` holds.
struct BlockRealize : StmtNode {
  static constexpr std::string_view kind_name = "BlockRealize";
  std::vector<Expr> iter_values;
  Expr predicate;
  Ref<Block> block;
  static constexpr auto fields() {
    return std::tuple{field("iter_values", &BlockRealize::iter_values), field("predicate", &BlockRealize::predicate),
                      field("block", &BlockRealize::block)};
  }
};

}  // namespace lathe::tir

// The kinds of statements, one row each.
// clang-format off
#define LATHE_STMT_KINDS(X)                                                                                 \
  X(lathe::tir::LetStmt)                                                                                    \
  X(lathe::tir::AttrStmt) X(lathe::tir::AssertStmt) X(lathe::tir::BufferStore) X(lathe::tir::DeclBuffer)    \
      X(lathe::tir::Allocate) X(lathe::tir::AllocateConst) X(lathe::tir::SeqStmt) X(lathe::tir::IfThenElse) \
          X(lathe::tir::Evaluate) X(lathe::tir::For) X(lathe::tir::While) X(lathe::tir::Block)              \
              X(lathe::tir::BlockRealize)
// clang-format on
template <>
struct lathe::ir::FamilyKinds<lathe::tir::StmtNode> {
  using type = KindsAfter<void LATHE_STMT_KINDS(LATHE_KIND)>;
};
// clang-format off
#define LATHE_STMT_PARTS(X) X(lathe::tir::BufferRegionNode) X(lathe::tir::MatchBufferRegionNode)
// clang-format on
LATHE_STMT_KINDS(LATHE_DECLARE_KIND)
LATHE_STMT_PARTS(LATHE_DECLARE_KIND)

namespace lathe::tir {

// A tensor function in destination-passing style. Handle parameters are bound to buffers by buffer_map; scalar
// parameters are their own values. Symbolic dimensions of parameter buffers are bound by the arguments' shapes.
struct PrimFunc : FunctionNode {
  static constexpr std::string_view kind_name = "PrimFunc";
  std::vector<Var> params;
  std::vector<std::pair<Var, Buffer>> buffer_map;  // in order of params
  Stmt body;
  DType ret_type = DType::void_();
  static constexpr auto fields() {
    return std::tuple{field("params", &PrimFunc::params, Role::define),
                      field("buffer_map", &PrimFunc::buffer_map, Role::define), field("body", &PrimFunc::body),
                      field("ret_type", &PrimFunc::ret_type), field("attrs", &PrimFunc::attrs)};
  }
  // The buffer bound to `param`, or null.
  Buffer buffer_of(const Var& param) const;
};
using Function = Ref<PrimFunc>;

// The statements in order, flattened; one statement is itself, none is Evaluate(0).
Stmt seq(std::vector<Stmt> statements);
Stmt nop();
bool is_nop(const Stmt& s);
// A function over `buffers` as parameters (a handle each), then `scalars`.
Function prim_func(std::vector<Buffer> buffers, Stmt body, std::vector<Var> scalars = {}, Attributes attrs = {});
// The root block around a body, as every function has it.
Stmt root_block(Stmt body, std::vector<Buffer> alloc_buffers = {});
// The function's root block realize, or null where the body is not one (already lowered).
const BlockRealize* root_of(const PrimFunc& function);
BufferRegion region_of(const Buffer& buffer);                                // the whole buffer
BufferRegion point_region(const Buffer& buffer, std::vector<Expr> indices);  // one element

}  // namespace lathe::tir

LATHE_DECLARE_KIND(lathe::tir::PrimFunc)
