#include "tir/script/numpy_text.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "tir/analysis/calls.h"
#include "tir/analysis/effects.h"
#include "tir/intrinsics/library.h"
#include "tir/script/numpy_expr.h"

namespace lathe::tir {
namespace {

using script::Precedence;

// Python nests so many loops and `with` statements in one function.
constexpr int deepest = 20;

class NumpyPrinter {
 public:
  NumpyPrinter(const IRModule& module, const std::map<std::string, std::string>& functions, script::Lines& lines,
               std::set<std::string_view>& used)
      : module_(module), functions_(functions), lines_(lines), values_(lines, used) {
    for (const std::string_view word : numpy_words()) values_.names.reserve(word);
    for (const auto& [name, written] : functions) values_.names.reserve(written);
  }

  void function(const std::string& name, const PrimFunc& f) {
    std::vector<std::string> parameters;
    std::vector<Var> numbers;
    for (const Var& param : f.params) {
      const Buffer b = f.buffer_of(param);
      if (!b && param->dtype.is_handle())
        refuse_numpy(param, "the handle parameter '" + param->name + "' is bound to no buffer");
      if (!b) numbers.push_back(param);
      parameters.push_back(b ? values_.define_array(b) : number(param));
    }
    lines_.line("def " + functions_.at(name) + "(" + script::join(parameters) + "):");
    lines_.indent();
    for (const Var& n : numbers) {
      const std::string& text = *values_.names.find(n.get());
      lines_.line(text + " = " + (n->dtype.is_integer() ? "int" : values_.dtype(n->dtype, n)) + "(" + text + ")");
    }
    for (const auto& [param, b] : f.buffer_map) symbols_of(b);
    for (const auto& [param, b] : f.buffer_map) {
      const std::string text = values_.array(b);
      lines_.line("assert " + text + ".shape == " + values_.shape(b->shape) + " and " + text +
                  ".dtype == " + values_.dtype(b->dtype, b));
    }
    nested(Stmt(f.body), "with np.errstate(all=\"ignore\"):");
    lines_.dedent();
  }

 private:
  // ---- arguments ----

  std::string number(const Var& param) {
    if (!param->dtype.is_integer()) return values_.names.define(param, param->name);
    const double half = std::ldexp(1, param->dtype.bits - 1);
    const bool no_sign = param->dtype.is_uint() || param->is_size;
    return values_.define_integer(param, {no_sign ? 0 : -half, param->dtype.is_uint() ? 2 * half - 1 : half - 1});
  }

  // What the array tells of the symbols in its buffer's layout.
  void symbols_of(const Buffer& b) {
    const auto tell = [&](const Expr& e, const std::string& value, double most) {
      const auto* symbol = e ? e.as<VarNode>() : nullptr;
      if (!symbol || values_.names.find(symbol)) return;
      const double held = symbol->dtype.bits <= 32 ? 0x1p31 - 1 : most;
      lines_.line(values_.define_integer(Var(symbol), {0, held}) + " = " + value);
    };
    const std::string text = values_.array(b);
    for (size_t d = 0; d < b->shape.size(); ++d) tell(b->shape[d], text + ".shape[" + std::to_string(d) + "]", 0x1p40);
    for (size_t d = 0; d < b->strides.size(); ++d)
      tell(b->strides[d], text + ".strides[" + std::to_string(d) + "] // " + text + ".itemsize", 0x1p40);
    tell(b->elem_offset, "0", 0);
    if (b->elem_offset && !b->elem_offset.is<VarNode>() && !is_int(b->elem_offset, 0))
      refuse_numpy(b, "'" + b->name + "' begins past its memory's begin, which an array does not tell");
  }

  // ---- statements ----

  void suite(const Stmt& s) {
    lines_.indent();
    values_.names.push();
    const size_t before = lines_.count();
    stmt(s);
    if (lines_.count() == before) lines_.line("pass");
    values_.names.pop();
    lines_.dedent();
  }

  void nested(const Stmt& s, const std::string& head) {
    if (++depth_ > deepest) refuse_numpy(s, "Python nests no more than 19 loops");
    lines_.line(head);
    suite(s);
    --depth_;
  }

  // Fresh memory, and its array.
  void new_array(const Buffer& b) {
    const std::string type = values_.dtype(b->dtype, b);
    std::string text;
    if (b->strides.empty() && (!b->elem_offset || is_int(b->elem_offset, 0))) {
      text = "np.empty(" + values_.shape(b->shape) + ", " + type + ")";
    } else {
      Expr size = b->elem_offset ? cast(DType::int64(), b->elem_offset) : int64(0);
      for (size_t d = 0; d < b->strides.size(); ++d)
        size = add(size, mul(sub(cast(DType::int64(), b->shape[d]), int64(1)), cast(DType::int64(), b->strides[d])));
      for (size_t d = 0; d < b->shape.size() && b->strides.empty(); ++d) size = max(size, int64(1));
      text = values_.laid_out("np.empty(max(" + values_.exact(add(size, int64(1))).text + ", 0), " + type + ")", b);
    }
    lines_.line(values_.define_array(b) + " = " + text);
  }

  void flat_memory(const Var& v, const std::string& text) {
    lines_.line(values_.names.define(v, v->name) + " = " + text);
  }

  void allocate(const Allocate& n) {
    Expr size = int64(1);
    for (const Expr& extent : n.extents) size = mul(size, cast(DType::int64(), extent));
    if (n.dtype.is_vector()) size = mul(size, int64(n.dtype.lanes));
    flat_memory(n.buffer_var, "np.empty(" + values_.exact(size).within(Precedence::conditional) + ", " +
                                  values_.dtype(n.dtype, n.buffer_var) + ")");
    stmt(n.body);
  }

  void constant(const AllocateConst& n) {
    const TensorDataNode& data = *n.data;
    const int64_t count = data.elements();
    const bool packed = data.dtype.storage_bits() < 8;
    std::string text;
    if (packed || (count <= 16 && data.dtype.is_integer())) {
      std::vector<std::string> values;
      for (int64_t k = 0; k < count; ++k)
        values.push_back(data.dtype.is_floating() ? fmt::format("{}", float_at(data, k))
                         : data.dtype.is_uint()   ? std::to_string(static_cast<uint64_t>(int_at(data, k)))
                                                  : std::to_string(int_at(data, k)));
      text = "np.array(" + script::list(values).text;
    } else {
      std::string digits;
      for (const char c : data.view()) digits += fmt::format("{:02x}", static_cast<uint8_t>(c));
      text = "np.frombuffer(bytes.fromhex(\"" + digits + "\")";
    }
    flat_memory(n.buffer_var, text + ", " + values_.dtype(data.dtype, n.buffer_var) + ")");
    stmt(n.body);
  }

  void declare(const DeclBuffer& n) {
    const bool there = n.buffer->data && values_.names.find(n.buffer->data.get());
    if (!there) {
      new_array(n.buffer);
    } else {
      const std::string text = values_.laid_out(values_.memory(n.buffer->data, n.buffer), n.buffer);
      lines_.line(values_.names.define(n.buffer, n.buffer->name) + " = " + text);
    }
    stmt(n.body);
  }

  void store(const BufferStore& n) {
    const Stmt s(&n);
    if (!n.predicate) return lines_.line(values_.element(n.buffer, n.indices) + " = " + stored(n));
    if (n.predicate->dtype.is_scalar()) {
      lines_.line("if " + values_.value(n.predicate).text + ":");
      lines_.indent();
      lines_.line(values_.element(n.buffer, n.indices) + " = " + stored(n));
      return lines_.dedent();
    }
    std::vector<std::string> args = values_.positions(n.indices);
    args.insert(args.begin(), {stored(n), values_.array(n.buffer), values_.value(n.predicate).text});
    lines_.line(script::call(values_.use("store_lanes"), args).text);
  }
  std::string stored(const BufferStore& n) { return values_.value(n.value).text; }

  void stmt(const Stmt& s) {
    match_all(
        s,
        [&](const LetStmt& n) {
          const auto [name, value] = values_.define(n.var, n.value);
          lines_.line(name + " = " + value);
          stmt(n.body);
        },
        [&](const AttrStmt& n) { stmt(n.body); },
        [&](const AssertStmt& n) {
          lines_.line("assert " + values_.value(n.condition).within(Precedence::conditional) + ", " +
                      script::string_literal(n.message).text);
        },
        [&](const BufferStore& n) { store(n); }, [&](const DeclBuffer& n) { declare(n); },
        [&](const Allocate& n) { allocate(n); }, [&](const AllocateConst& n) { constant(n); },
        [&](const SeqStmt& n) {
          for (const Stmt& each : n.seq) stmt(each);
        },
        [&](const IfThenElse& n) {
          lines_.line("if " + values_.value(n.condition).text + ":");
          suite(n.then_case);
          if (!n.else_case) return;
          lines_.line("else:");
          suite(n.else_case);
        },
        [&](const Evaluate& n) { effect(n.value); }, [&](const For& n) { loop(n); },
        [&](const While& n) { nested(n.body, "while " + values_.value(n.condition).text + ":"); },
        [&](const Block& n) { block(n, nullptr); }, [&](const BlockRealize& n) { block(*n.block, &n); });
  }

  void effect(const Expr& e) {
    const auto* call = e.as<Call>();
    if (!call || call->op->effect == Effect::pure) return;
    if (call->op == &intrinsic::break_loop) return lines_.line("break");
    if (call->op == &intrinsic::continue_loop) return lines_.line("continue");
    if (call->op == &intrinsic::assume) return lines_.line("assert " + values_.value(call->args[0]).text);
    if (call->op == &intrinsic::ret) return lines_.line("return " + values_.value(call->args[0]).text);
    if (call->op == &intrinsic::call_function) return called(*call);
    if (call->op == &intrinsic::raise_error) {
      const auto* message = call->args[1].as<StringImm>();
      return lines_.line("raise RuntimeError(" + script::string_literal(message ? message->value : "").text + ")");
    }
    if (is_hint(*call)) return;
    if (call->op == &intrinsic::tvm_storage_sync)
      refuse_numpy(e, "threads wait for one another here, which loops over them do not");
    lines_.line(values_.value(e).text);  // which refuses it
  }

  void loop(const For& n) {
    const bool from_zero = is_int(n.min, 0);
    const auto [first, low] = values_.whole(n.min);
    const auto [last, high] = values_.whole(n.min + n.extent);
    std::string head = "range(" + (from_zero ? values_.whole(n.extent).first : first + ", " + last) + "):";
    if (n.kind == ForKind::thread_binding) head += "  # " + n.thread_binding->thread_tag;
    if (n.kind == ForKind::parallel) head += "  # parallel";
    if (n.kind == ForKind::vectorized) head += "  # vectorized";
    if (n.kind == ForKind::unrolled) head += "  # unrolled";
    values_.names.push();
    const std::string name = values_.define_integer(n.loop_var, {low.low, high.high - 1});
    nested(n.body, "for " + name + " in " + head);
    values_.names.pop();
  }

  void block(const Block& b, const BlockRealize* realize) {
    if (!realize) refuse_numpy(Stmt(&b), "the block '" + b.name + "' is not realized");
    const bool guarded = !is_int(realize->predicate, 1);
    if (guarded) lines_.line("if " + values_.value(realize->predicate).text + ":");
    if (guarded) lines_.indent();
    values_.names.push();
    std::vector<std::string> values, variables;
    std::vector<NumpyExpressions::Interval> intervals;
    for (const Expr& value : realize->iter_values) {
      auto [text, interval] = values_.whole(value);
      values.push_back(std::move(text));
      intervals.push_back(interval);
    }
    for (size_t k = 0; k < b.iter_vars.size(); ++k) {
      const Range& dom = b.iter_vars[k]->dom;
      const NumpyExpressions::Interval within{values_.whole(dom.min).second.low,
                                              values_.whole(dom.min + dom.extent).second.high - 1};
      variables.push_back(values_.define_integer(
          b.iter_vars[k]->var, {std::max(intervals[k].low, within.low), std::min(intervals[k].high, within.high)}));
    }
    const size_t before = lines_.count();
    const std::string remark = "  # block " + script::string_literal(b.name).text;
    if (!values.empty()) lines_.line(script::join(variables) + " = " + script::join(values) + remark);
    for (const Buffer& allocated : b.alloc_buffers) new_array(allocated);
    for (const MatchBufferRegion& match : b.match_buffers) view(*match);
    if (b.init) initialise(b);
    if (!described(b)) stmt(b.body);
    if (guarded && lines_.count() == before) lines_.line("pass");
    values_.names.pop();
    if (guarded) lines_.dedent();
  }

  void initialise(const Block& b) {
    std::string first;
    for (const IterVar& axis : b.iter_vars) {
      if (axis->type != IterType::reduce) continue;
      first += (first.empty() ? "" : " and ") + *values_.names.find(axis->var.get()) +
               " == " + values_.exact(axis->dom.min).within(Precedence::sum);
    }
    if (first.empty()) return stmt(b.init);
    lines_.line("if " + first + ":");
    suite(b.init);
  }

  // The body of a block that is an intrinsic of the library's means what the intrinsic's description does to the views.
  bool described(const Block& b) {
    const std::string* name = tensor_intrin_of(b);
    const auto found = name ? library_intrin(*name) : std::nullopt;
    if (!found || found->description->buffer_map.size() != b.match_buffers.size()) return false;
    for (size_t k = 0; k < b.match_buffers.size(); ++k) {
      const std::string text = values_.array(b.match_buffers[k]->buffer);
      const Buffer& described = found->description->buffer_map[k].second;
      values_.names.set(described, text);
      for (size_t d = 0; d < described->shape.size(); ++d) {
        const auto* multiple = described->shape[d].as<Mul>();
        const int64_t factor = multiple ? as_int(multiple->b).value_or(1) : 1;
        const auto* symbol = (multiple ? multiple->a : described->shape[d]).as<VarNode>();
        if (symbol && !values_.names.find(symbol))
          lines_.line(values_.define_integer(Var(symbol), {0, 0x1p31 - 1}) + " = " + text + ".shape[" +
                      std::to_string(d) + "] // " + std::to_string(factor));
      }
    }
    stmt(intrin_body(*found->description));
    return true;
  }

  // A region of another buffer under a name of its own; the leading dimensions that it lacks are of extent 1.
  void view(const MatchBufferRegionNode& match) {
    const Buffer& b = match.buffer;
    const std::vector<Range>& region = match.source->region;
    const size_t dropped = region.size() - std::min(region.size(), b->shape.size());
    std::vector<std::string> parts;
    for (size_t d = 0; d < region.size(); ++d) {
      const std::string first = values_.exact(region[d].min).within(Precedence::conditional);
      parts.push_back(
          d < dropped ? first
                      : first + ":" + values_.exact(region[d].min + region[d].extent).within(Precedence::conditional));
    }
    if (dropped == region.size()) parts.emplace_back("...");  // one element, as an array
    const std::string source = values_.array(match.source->buffer);
    const std::string text = values_.define_array(b);
    lines_.line(text + " = " + script::subscript(source, parts).text);
    for (size_t d = 0; d < b->strides.size(); ++d)
      layout_symbol(b->strides[d], text + ".strides[" + std::to_string(d) + "] // " + text + ".itemsize");
    const Expr& before = match.source->buffer->elem_offset;
    const std::string place = "(" + text + ".ctypes.data - " + source + ".ctypes.data) // " + text + ".itemsize";
    layout_symbol(b->elem_offset,
                  before && !is_int(before, 0) ? values_.exact(before).within(Precedence::sum) + " + " + place : place);
  }
  void layout_symbol(const Expr& e, const std::string& value) {
    if (!e || !e.is<VarNode>()) return;
    const auto* symbol = e.as<VarNode>();
    const double most = std::ldexp(1, symbol->dtype.bits <= 32 ? 31 : 40) - 1;
    lines_.line(values_.define_integer(Var(symbol), {-most, most}) + " = " + value);
  }

  // ---- calls between functions ----

  void called(const Call& call) {
    const std::string* name = callee_of(call);
    const Function callee = name ? module_.find_as<PrimFunc>(*name) : Function();
    if (!callee || callee->params.size() + 1 != call.args.size())
      refuse_numpy(Expr(&call), "there is no function '" + (name ? *name : "") + "' that takes these arguments");
    std::vector<std::string> args;
    for (size_t k = 0; k < callee->params.size(); ++k) {
      const Buffer wanted = callee->buffer_of(callee->params[k]);
      const Expr& given = call.args[k + 1];
      args.push_back(wanted ? passed(wanted, given) : values_.value(given).within(Precedence::conditional));
    }
    lines_.line(functions_.at(*name) + "(" + script::join(args) + ")");
  }

  // The callee looks at the shape itself.
  std::string passed(const Buffer& wanted, const Expr& given) {
    const BufferLoad* first = passed_element(given);
    const auto constant = [](const Expr& e) { return as_int(e).has_value(); };
    const bool known = std::all_of(wanted->shape.begin(), wanted->shape.end(), constant) && wanted->strides.empty();
    const auto* address = given.as<VarNode>();
    if (!first && (!address || !known)) refuse_numpy(given, "memory of a size that nothing tells is passed here");
    if (!first) return values_.laid_out(values_.memory(Var(address), wanted), wanted);
    const Buffer& b = first->buffer;
    const std::string source = values_.array(b);
    const bool same_rank = b->shape.size() == wanted->shape.size();
    const bool whole = passes_whole_buffer(*first);
    if (whole && same_rank) return source;
    std::string part = source;
    std::vector<std::string> slices;
    for (const Expr& index : first->indices)
      slices.push_back(values_.exact(index).within(Precedence::conditional) + ":");
    if (!whole) part = script::subscript(source, slices).text;
    if (known) return values_.laid_out(part, wanted);
    if (same_rank && !wanted->strides.empty()) return part;
    refuse_numpy(given, "a part of '" + b->name + "' is passed whose size the called function leaves open");
  }

  const IRModule& module_;
  const std::map<std::string, std::string>& functions_;
  script::Lines& lines_;
  NumpyExpressions values_;
  int depth_ = 0;
};

}  // namespace

support::Result<std::string> numpy_text(const ir::IRModule& module) {
  return support::catch_diagnostics([&]() -> support::Result<std::string> {
    script::Lines lines(4);
    std::set<std::string_view> used;
    std::map<std::string, std::string> functions;
    script::Names names;
    for (const std::string_view word : numpy_words()) names.reserve(word);
    for (const auto& [name, function] : module)
      if (function.as<PrimFunc>()) functions[name] = names.define(function, name);
    for (const auto& [name, function] : module) {
      const auto* f = function.as<PrimFunc>();
      if (!f) continue;
      lines.blank();
      lines.blank();
      NumpyPrinter(module, functions, lines, used).function(name, *f);
    }
    return numpy_prelude(used) + lines.str();
  });
}

}  // namespace lathe::tir
