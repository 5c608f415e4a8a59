#include "tir/analysis/zero_border.h"

#include "tir/rewrite.h"

namespace lathe::tir {

namespace {

ir::Value::List numbers(const std::vector<int64_t>& list) { return {list.begin(), list.end()}; }

// A number for each of `rank` dimensions; nothing where the value is something else.
std::optional<std::vector<int64_t>> counts(const ir::Value::Map& map, const std::string& key, size_t rank) {
  const auto entry = map.find(key);
  const auto* list = entry == map.end() ? nullptr : entry->second.get<ir::Value::List>();
  if (!list || list->size() != rank) return std::nullopt;
  std::vector<int64_t> result;
  for (const ir::Value& value : *list) {
    const auto* number = value.get<int64_t>();
    if (!number || *number < 0) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

// The buffer that the annotation speaks of.
const std::string* named(const ir::Attributes& annotations) {
  const auto* map = annotations.get<ir::Value::Map>(zero_border_key);
  const auto name = map ? map->find("buffer") : ir::Value::Map::const_iterator();
  return map && name != map->end() ? name->second.get<std::string>() : nullptr;
}

}  // namespace

ir::Value value_of(const ZeroBorder& border, const std::string& buffer) {
  return ir::Value::Map{{"buffer", buffer}, {"before", numbers(border.before)}, {"after", numbers(border.after)}};
}

std::optional<BorderedRead> bordered_read(const Block& block) {
  const std::string* name = named(block.annotations);
  const auto* store = block.body.as<BufferStore>();
  const auto* sum = name && store ? store->value.as<Add>() : nullptr;
  if (!sum) return std::nullopt;
  const auto is_own = [&](const Expr& e) {
    const auto* load = e.as<BufferLoad>();
    return load && load->buffer == store->buffer && load->indices.size() == store->indices.size() &&
           std::equal(load->indices.begin(), load->indices.end(), store->indices.begin(),
                      [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
  };
  const Expr added = without_casts(is_own(sum->a) ? sum->b : sum->a);
  const auto* product = added.as<Mul>();
  if (!product || !(is_own(sum->a) || is_own(sum->b))) return std::nullopt;
  const auto& map = *block.annotations.get<ir::Value::Map>(zero_border_key);
  for (const Expr& factor : {without_casts(product->a), without_casts(product->b)}) {
    const auto* load = factor.as<BufferLoad>();
    if (!load || load->buffer->name != *name) continue;
    const size_t rank = load->buffer->shape.size();
    auto before = counts(map, "before", rank), after = counts(map, "after", rank);
    if (before && after) return BorderedRead{cast<BufferLoad>(factor), {std::move(*before), std::move(*after)}};
  }
  return std::nullopt;
}

void rename_zero_border(ir::Attributes& annotations, const Buffer& buffer) {
  if (!named(annotations)) return;
  if (!buffer) return annotations.erase(zero_border_key);
  ir::Value::Map map = *annotations.get<ir::Value::Map>(zero_border_key);
  map["buffer"] = buffer->name;
  annotations.set(zero_border_key, map);
}

Stmt with_zero_border_of(const Stmt& s, const Buffer& from, const Buffer& to) {
  class Renaming : public TirRewriter {
   public:
    Renaming(const Buffer& from, const Buffer& to) : from_(from), to_(to) {}

   protected:
    Stmt visit_stmt(Stmt s) override {
      s = children(std::move(s));
      const auto* block = s.as<Block>();
      const std::string* name = block ? named(block->annotations) : nullptr;
      if (!name || *name != from_->name) return s;
      return with(*block, [&](Block& copy) { rename_zero_border(copy.annotations, to_); });
    }
    Expr visit_expr(Expr e) override { return e; }

   private:
    const Buffer &from_, &to_;
  };
  return Renaming(from, to)(s);
}

}  // namespace lathe::tir
