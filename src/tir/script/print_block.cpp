// Blocks of tensor functions as text.
#include "tir/script/print_function.h"

namespace lathe::tir {

using script::join;
using script::string_literal;

std::string FunctionPrinter::region_text(const BufferRegionNode& r) { return buffer(r.buffer) + region(r.region); }

std::string FunctionPrinter::regions(std::string_view name, const std::vector<BufferRegion>& list) {
  std::vector<std::string> parts;
  for (const BufferRegion& r : list) parts.push_back(region_text(*r));
  return script::call(tir(name), parts).text;
}

// Whether the axis runs over exactly the loop that it is bound to.
bool FunctionPrinter::remaps(const IterVarNode& v, const Expr& value) const {
  if (v.type != IterType::spatial && v.type != IterType::reduce) return false;
  if (!v.thread_tag.empty() || v.var->is_size || v.var->dtype != value->dtype) return false;
  const auto it = domains_.find(value.get());
  return it != domains_.end() && ir::structural_equal(it->second.min, v.dom.min) &&
         ir::structural_equal(it->second.extent, v.dom.extent);
}

std::string FunctionPrinter::axis_call(const IterVarNode& v, const Expr* value) {
  std::vector<std::string> arguments;
  if (is_int(v.dom.min, 0) && v.dom.min->dtype == v.dom.extent->dtype) {
    arguments.push_back(index(v.dom.extent).text);
  } else {
    const auto [begin, end] = bounds(v.dom);
    arguments.push_back("(" + begin + ", " + end + ")");
  }
  if (value) arguments.push_back(index(*value).text);
  if (!v.thread_tag.empty()) arguments.push_back("thread=" + string_literal(v.thread_tag).text);
  if (v.var->dtype != v.dom.extent->dtype || (value && (*value)->dtype != v.var->dtype))
    arguments.push_back("dtype=" + string_literal(v.var->dtype.str()).text);
  return script::call(tir("axis.") + std::string(script::iter_type_name(v.type)), arguments).text;
}

void FunctionPrinter::axes(const Block& b, const BlockRealize* realize) {
  const size_t count = b.iter_vars.size();
  for (size_t i = 0; i < count;) {
    size_t end = i;
    if (realize && options.syntax_sugar)
      while (end < count && remaps(*b.iter_vars[end], realize->iter_values[end])) ++end;
    if (end - i < 2) {
      const Expr* value = realize ? &realize->iter_values[i] : nullptr;
      const std::string text = axis_call(*b.iter_vars[i], value);
      lines_.line(define_var(b.iter_vars[i]->var) + " = " + text);
      announce(b.iter_vars[i]->var);
      ++i;
      continue;
    }
    std::string letters;
    std::vector<std::string> variables, loops;
    const size_t begin = i;
    for (; i < end; ++i) {
      letters += b.iter_vars[i]->type == IterType::spatial ? 'S' : 'R';
      loops.push_back(expr(realize->iter_values[i]).text);
    }
    for (size_t k = begin; k < end; ++k) variables.push_back(define_var(b.iter_vars[k]->var));
    lines_.line(join(variables) + " = " + tir("axis.remap") + "(" + string_literal(letters).text + ", [" + join(loops) +
                "])");
    for (size_t k = begin; k < end; ++k) announce(b.iter_vars[k]->var);
  }
}

void FunctionPrinter::block(const Block& b, const BlockRealize* realize) {
  std::vector<std::string> arguments{string_literal(b.name).text};
  if (!realize) arguments.emplace_back("no_realize=True");
  begins_here(b);
  lines_.line("with " + script::call(tir("block"), arguments).text + ":");
  lines_.indent();
  names.push();
  // The predicate is outside the block: it speaks of loops, not of the block's variables.
  std::string where;
  if (realize && !(realize->predicate.is<IntImm>() && is_int(realize->predicate, 1)))
    where = script::call(tir("where"), std::vector{expr(realize->predicate).text}).text;
  axes(b, realize);
  if (!where.empty()) lines_.line(where);
  for (const Buffer& allocated : b.alloc_buffers) buffer_line(allocated, "alloc_buffer");
  for (const MatchBufferRegion& m : b.match_buffers) buffer_line(m->buffer, "match_buffer", {region_text(*m->source)});
  lines_.line(regions("reads", b.reads));
  lines_.line(regions("writes", b.writes));
  if (!b.annotations.empty()) lines_.line(tir("block_attr") + "(" + attributes(b.annotations).text + ")");
  if (b.init) {
    lines_.line("with " + tir("init") + "():");
    suite(b.init);
  }
  stmt(b.body, true);
  names.pop();
  lines_.dedent();
}

}  // namespace lathe::tir
