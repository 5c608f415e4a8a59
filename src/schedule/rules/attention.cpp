// attention: two products with reductions over rows between them, softmax(Q K) V. Block by block of rows: the scores of
// a block go into memory that stays in the cache, softmax runs over them row by row, and their product with the values
// follows. Each product gets a register tile; the keys are copied, once for all blocks, into panels that its lanes
// walk. (Rabe and Staats 2021 and Dao 2022 keep scores on the chip so; a row is whole here, and nothing has to be
// rescaled.) Lengths may be known to the run only: the last block is then a shorter one, and so where none divides.
#include "schedule/rules/attention.h"

#include "ir/visit.h"
#include "schedule/codes.h"
#include "schedule/rules/nest/rows.h"
#include "schedule/rules/tile/panels.h"
#include "schedule/rules/tile/tile_model.h"

namespace lathe::schedule {

namespace {

// What a block that adds up products of two tensors' elements is made of.
struct Product {
  const BufferStore* store = nullptr;
  const BufferLoad *a = nullptr, *b = nullptr;
};

std::optional<Product> product_of(const Block& block) {
  const auto* store = block.body.as<BufferStore>();
  const auto* sum = store ? store->value.as<Add>() : nullptr;
  if (!sum || !has_reduce_iters(block) || store->indices.size() < 2) return std::nullopt;
  const auto* own = sum->a.as<BufferLoad>();
  const auto* product = sum->b.as<Mul>();
  if (!own || own->buffer != store->buffer || !product) return std::nullopt;
  const Product found{store, product->a.as<BufferLoad>(), product->b.as<BufferLoad>()};
  if (!found.a || !found.b || found.a->buffer == found.b->buffer) return std::nullopt;
  return found;
}

bool indexed_by(const BufferLoad& load, const Expr& e) {
  if (!e.is<VarNode>()) return false;
  const Var v = ir::cast<VarNode>(e);
  return std::any_of(load.indices.begin(), load.indices.end(), [&](const Expr& index) { return uses_var(index, v); });
}

// The blocks of attention by name, and what lies between them.
struct Attention {
  std::string scores, weights, values;  // the first product, what softmax makes of it, the second product
  std::vector<std::string> softmax;     // between the scores and the weights, in program order
  std::vector<std::string> totals;      // of the weights: sums that the second product's result is divided by
  std::string start;                    // of the second product's sums, where it is a block of its own, or empty
  std::string output;                   // what follows the second product, or this itself
  Buffer score, key, mixed;             // what the products write, and the operand with the columns of the scores
  std::optional<int64_t> rows, columns;
};

std::optional<std::string> find_operands(const Block& block, const Product& scores, Attention& found) {
  const size_t rank = scores.store->indices.size();
  const Expr row = scores.store->indices[rank - 2], column = scores.store->indices[rank - 1];
  for (const auto& [key, query] : {std::pair{scores.a, scores.b}, std::pair{scores.b, scores.a}})
    if (indexed_by(*key, column) && !indexed_by(*key, row) && indexed_by(*query, row) && !indexed_by(*query, column))
      found.key = key->buffer;
  if (!found.key) return fmt::format("block '{}' does not multiply rows with columns", block.name);
  found.score = scores.store->buffer;
  found.rows = as_int(found.score->shape[rank - 2]);
  found.columns = as_int(found.score->shape[rank - 1]);
  for (const IterVar& iter : block.iter_vars)
    if (is_int(iter->dom.extent, 0)) return fmt::format("block '{}' has nothing to compute", block.name);
  if (!block.init) return fmt::format("block '{}' sums products whose number is not known", block.name);
  return std::nullopt;
}

std::optional<std::string> find_parts(const std::vector<Work>& list, Attention& found) {
  std::vector<size_t> products;
  for (size_t i = 0; i < list.size(); ++i)
    if (product_of(list[i].block())) products.push_back(i);
  if (products.size() != 2) return fmt::format("{} blocks are sums of products, instead of two", products.size());
  const size_t first = products[0], second = products[1];
  const Product scores = *product_of(list[first].block()), values = *product_of(list[second].block());
  if (first != 0) return fmt::format("block '{}' comes before the products", list[0].block().name);
  if (values.store->indices.size() != scores.store->indices.size()) return "the products have different ranks";
  if (auto why = find_operands(list[first].block(), scores, found)) return why;
  found.scores = list[first].block().name;
  found.values = list[second].block().name;
  found.output = list.back().block().name;
  found.mixed = values.store->buffer;
  bool reduces = false;
  for (size_t i = first + 1; i < list.size(); ++i) {
    const Work& work = list[i];
    if (i == second || (i > second && i + 1 == list.size())) continue;
    const std::string& name = work.block().name;
    const std::vector<Buffer> written = buffers_written(work.realize);
    if (written == std::vector<Buffer>{found.mixed}) {
      found.start = name;
      continue;
    }
    const std::vector<Buffer> read = buffers_read(work.realize);
    if (i > second && std::find(read.begin(), read.end(), found.mixed) != read.end())
      return "several blocks follow the products";
    if (work.is_output) return fmt::format("block '{}', between the products, writes an output", name);
    if (work.reduces() && !is_reduction(work.block())) return fmt::format("block '{}' is not a plain reduction", name);
    reduces = reduces || work.reduces();
    if (written == std::vector<Buffer>{values.a->buffer} && !work.reduces())
      found.weights = name;
    else
      (found.weights.empty() ? found.softmax : found.totals).push_back(name);
  }
  if (found.softmax.empty() && found.weights.empty()) return "nothing is between the products";
  if (!reduces) return "nothing is reduced between the products";
  if (found.weights.empty()) return "the second product reads nothing that is computed between";
  return std::nullopt;
}

// Whether the block makes a product's operand, or one number a row, from what a reduction found: the last of softmax,
// which is not computed again for each column of the values.
bool is_of_a_row(const Work& work, const std::vector<Work>& list) {
  const std::vector<Buffer> read = buffers_read(work.realize), written = buffers_written(work.realize);
  const auto holds = [](const std::vector<Buffer>& buffers, const Buffer& buffer) {
    return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
  };
  bool multiplied = false, from_reduction = false;
  const auto one_a_row = [](const Buffer& buffer) { return !buffer->shape.empty() && is_int(buffer->shape.back(), 1); };
  for (const Work& other : list) {
    const auto product = product_of(other.block());
    multiplied = multiplied || (product && (holds(written, product->a->buffer) || holds(written, product->b->buffer)));
    if (!other.reduces()) continue;
    for (const Buffer& buffer : buffers_written(other.realize)) from_reduction = from_reduction || holds(read, buffer);
  }
  return from_reduction && (multiplied || std::all_of(written.begin(), written.end(), one_a_row));
}

// The loops of the output block that walk what the second product computes, in its order: batches, rows, columns.
Result<std::vector<LoopRV>> loops_of_output(Schedule& schedule, const Attention& parts) {
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, parts.output);
  std::vector<Expr> indices;
  post_order(work.block().body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (load && load->buffer == parts.mixed) indices = load->indices;
  });
  const std::vector<LoopRV> loops = TRY(schedule.get_loops(TRY(handle(schedule, work))));
  std::vector<bool> taken(loops.size());
  // The loop that an index goes by; a 0, all that an axis of one element has, by any of one iteration.
  const auto loop_of = [&](const Expr& index) -> std::optional<size_t> {
    for (size_t v = 0; v < work.block().iter_vars.size(); ++v)
      for (size_t l = 0; l < loops.size(); ++l) {
        if (taken[l] || work.realize->iter_values[v] != Expr(work.loops[l]->loop_var)) continue;
        if (index == Expr(work.block().iter_vars[v]->var)) return l;
      }
    for (size_t l = 0; l < loops.size(); ++l)
      if (is_int(index, 0) && !taken[l] && is_int(work.loops[l]->extent, 1)) return l;
    return std::nullopt;
  };
  std::vector<LoopRV> order;
  for (const Expr& index : indices) {
    const auto found = loop_of(index);
    if (!found) break;
    taken[*found] = true;
    order.push_back(loops[*found]);
  }
  if (order.size() < 2 || order.size() != parts.mixed->shape.size())
    return refuse(codes::not_inlinable, fmt::format("block '{}' does not walk the result by loops", parts.output));
  TRY(schedule.reorder(order));
  return order;
}

// A copy of the keys in panels of `width` columns, each a row for every term of the sum; what is given makes it.
Result<BlockRV> copy_keys(Schedule& schedule, const Attention& parts, int64_t width) {
  const std::vector<Work> list = works(schedule.function());
  const Work& work = *find(list, parts.scores);
  const Product product = *product_of(work.block());
  const BufferLoad& key = product.a->buffer == parts.key ? *product.a : *product.b;
  PanelAxes axes;
  for (const IterVar& iter : work.block().iter_vars) {
    if (!indexed_by(key, iter->var)) continue;
    if (iter->type == IterType::reduce)
      axes.terms.emplace_back(iter->var);
    else if (product.store->indices.back() == Expr(iter->var))
      axes.column = iter->var;
    else
      axes.around.emplace_back(iter->var);
  }
  const bool panels = !parts.columns || *parts.columns > width;
  return copy_into_panels(schedule, work, parts.key, axes, panels ? width : 0);
}

Status tile_in_block(Schedule& schedule, const RuleContext& context, std::string_view rule, const std::string& block,
                     size_t outer, const std::string& epilogue = {}) {
  const std::vector<Work> list = works(schedule.function());
  const Contraction found = TRY(contraction(schedule.function(), *find(list, block), outer));
  if (found.windows) return refuse(codes::not_inlinable, fmt::format("block '{}' reads windows", block));
  TilePlan plan = TRY(plan_tile(schedule, context, rule, found, true));
  plan.outer = outer;
  return register_tile(schedule, context, plan, epilogue);
}

// The first product: in tiles; where keys that were not copied lie the other way, each score is a sum in vectors.
Status schedule_scores(Schedule& schedule, const RuleContext& context, const Attention& parts, size_t outer,
                       bool copied) {
  if (parts.columns == 1 && copied) return support::success();  // a single column is no axis for lanes
  Schedule attempt = schedule;
  const Status tiled = tile_in_block(attempt, context, "scores", parts.scores, outer);
  if (tiled.ok()) schedule = std::move(attempt);
  return tiled.ok() || copied ? tiled : schedule_rows(schedule, context, {parts.scores}, outer);
}

// An odd number of cache lines from row to row: the rows of a tile then lie in different sets of the nearest cache,
// where rows 4 KB apart would all meet in one.
Status keep_rows_apart(Schedule& schedule, const std::string& block, const Attention& parts) {
  const int64_t line = 8 * target::cache_line_bytes / parts.score->dtype.storage_bits();
  if (parts.columns && *parts.columns < 2 * line) return support::success();
  return schedule.storage_align(TRY(schedule.get_block(block)), 0, -2, 2 * line, line);
}

// Rows of a tile beside two vectors a row.
int64_t tile_height(const target::Target& target) {
  return std::clamp<int64_t>((target.vector_registers - 3) / 2, 1, 14);
}

// Whether the batches alone keep the threads busy: then each copies its own keys.
bool batches_are_enough(int64_t batches, const target::Target& target) {
  return batches >= 4 * target.cores || (batches > 0 && batches % target.cores == 0);
}

// The loop over blocks of rows: of the block that writes the output, with the start of its sums where that is by
// itself.
Result<LoopRV> block_rows(Schedule& schedule, const Attention& parts, LoopRV rows, size_t position, int64_t block) {
  const LoopRV strips = TRY(schedule.strip_mine(rows, block))[0];
  if (parts.output != parts.values || parts.start.empty()) return strips;
  const BlockRV start = TRY(schedule.get_block(parts.start));
  const LoopRV own = TRY(schedule.get_loops(start)).at(position);
  return schedule.merge({TRY(schedule.strip_mine(own, block))[0], strips});
}

// Brings softmax to its block of rows and, but for the first reduction, to single rows: while the lanes of one row's
// largest score are combined, the next row begins.
Status place_softmax(Schedule& schedule, const Attention& parts, LoopRV rows, size_t outer, int64_t block) {
  const auto place = [&](const std::string& name, LoopRV loop) -> Status {
    return schedule.compute_at(TRY(schedule.get_block(name)), loop);
  };
  for (size_t i = parts.totals.size(); i-- > 0;) TRY(place(parts.totals[i], rows));
  TRY(place(parts.weights, rows));
  const LoopRV row = block > 1 ? TRY(schedule.get_loops(TRY(schedule.get_block(parts.weights)))).at(outer) : rows;
  for (size_t i = parts.softmax.size(); i-- > 1;) TRY(place(parts.softmax[i], row));
  if (!parts.softmax.empty()) TRY(place(parts.softmax[0], rows));
  // What reads the weights of a row follows them there; sums of unknown length, whose starts are by themselves, stay.
  Schedule attempt = schedule;
  const auto follow = [&]() -> Status {
    for (const std::string& total : parts.totals) TRY(attempt.reverse_compute_at(TRY(attempt.get_block(total)), row));
    return support::success();
  };
  if (block > 1 && follow()) schedule = std::move(attempt);
  return support::success();
}

}  // namespace

int64_t attention_rows(std::optional<int64_t> rows, std::optional<int64_t> columns, const target::Target& target) {
  // Scores and weights, in float32. They should lie on the stack, as what is asked for and given back in each turn of
  // the loop over heads is often new memory to the system; an eighth of the cache leaves room for keys and values,
  // which pass through. A row more or less changes little, but less than a tile's worth would read the keys too often.
  constexpr int64_t on_stack = 32 << 10;
  constexpr int64_t least_rows = 14;
  // Where the last block is a shorter one, or may be, blocks are of whole tiles; of several, as more costs nothing but
  // memory, and what is left of the last block is cut in smaller tiles.
  const int64_t height = tile_height(target), tiles = std::max<int64_t>(2, (least_rows + height - 1) / height);
  const int64_t whole_tiles = tiles * height;
  if (rows == 1) return 1;
  // Of blocks of equal length each is the same code.
  const auto nearly_whole = [&](int64_t known_rows) {
    if (known_rows <= 2 * whole_tiles) return known_rows;
    const int64_t divisor = largest_divisor(known_rows, 2 * whole_tiles);
    return 2 * divisor >= least_rows ? divisor : whole_tiles;
  };
  if (!columns) return rows ? nearly_whole(*rows) : whole_tiles;
  const int64_t cache = target.cache_bytes(2, 512 << 10), row = 2 * 4 * std::max<int64_t>(*columns, 1);
  const int64_t few = std::min(cache / 8 / row, on_stack / (4 * (*columns + 32)));
  const int64_t preferred = std::max(few, least_rows), most = cache * 3 / 4 / row;
  if (!rows) return std::max(few / height * height, whole_tiles);
  // A tile's worth of rows, of which nothing is left over: what follows the second product runs on the tile then.
  const int64_t tile = largest_divisor(*rows, height);
  if (2 * tile >= std::max(least_rows, height) && tile <= most) return tile;
  const int64_t divisor = largest_divisor(*rows, std::min(preferred, most));
  if (divisor == *rows) return divisor;
  // Of low tiles several, whole ones: each block reads all keys and values.
  if (2 * height < least_rows) return std::min({*rows, whole_tiles, std::max(most / height, int64_t{1}) * height});
  if (2 * divisor >= least_rows) return divisor;
  for (int64_t block = preferred; block <= std::min(*rows, most); ++block)
    if (*rows % block == 0) return block;
  return nearly_whole(*rows);
}

Result<Outcome> attention(Schedule& schedule, const RuleContext& context) {
  const std::vector<Work> before = works(schedule.function());
  const auto multiplies = [](const Work& work) { return product_of(work.block()).has_value(); };
  if (std::count_if(before.begin(), before.end(), multiplies) != 2) return Outcome("it does not hold two products");
  for (const Work& work : before)
    if (has_effects(work.block())) return Outcome(fmt::format("block '{}' has effects", work.block().name));
  TRY(inline_producers(schedule, [&](const Work& work) {
    return is_costly(work.block()) || is_of_a_row(work, works(schedule.function()));
  }));
  const std::vector<Work> inlined = works(schedule.function());
  Attention parts;
  if (Outcome why = find_parts(inlined, parts)) return why;
  const auto terms = constant_product(find(inlined, parts.scores)->loops);
  const int64_t most = attention_rows(parts.rows, parts.columns, context.target);
  std::vector<int64_t> blocks;
  for (int64_t block = 1; block <= parts.rows.value_or(4 * most); ++block)
    if (!parts.rows || *parts.rows % block == 0 || block == most) blocks.push_back(block);
  const int64_t block = TRY(schedule.get(TRY(decide(schedule, context, "attention", "block", blocks, most))));

  // A few rows do not pay for putting the keys in order: they are multiplied as they lie.
  const bool copies = !parts.rows || *parts.rows >= 4;
  const int64_t width = 2 * context.target.lanes(static_cast<int>(parts.score->dtype.storage_bits()));
  std::optional<BlockRV> copy;
  if (copies) copy = TRY(copy_keys(schedule, parts, width));
  const std::vector<LoopRV> walks = TRY(loops_of_output(schedule, parts));
  std::vector<LoopRV> outer(walks.begin(), walks.end() - 2);
  int64_t batches = 1;
  for (const LoopRV& loop : outer) batches *= as_int(TRY(schedule.get(loop))->extent).value_or(1);
  const bool own_keys = copies && !outer.empty() && batches_are_enough(batches, context.target);
  const size_t count = outer.size() + 1;  // loops around a block of rows
  const LoopRV rows = TRY(block_rows(schedule, parts, walks[outer.size()], outer.size(), block));
  outer = TRY(schedule.get_loops(TRY(schedule.get_block(parts.output))));
  outer.resize(count - 1, rows);

  // What one block of rows needs comes into its loop.
  if (parts.output != parts.values) {
    TRY(schedule.compute_at(TRY(schedule.get_block(parts.values)), rows));
    if (!parts.start.empty()) TRY(schedule.compute_at(TRY(schedule.get_block(parts.start)), rows));
  }
  TRY(place_softmax(schedule, parts, rows, count, block));
  TRY(schedule.compute_at(TRY(schedule.get_block(parts.scores)), rows));
  if (own_keys) TRY(schedule.compute_at(*copy, outer.back()));
  for (const std::string& name : {parts.scores, parts.weights}) TRY(keep_rows_apart(schedule, name, parts));

  const size_t around_row = count + (block > 1 ? 1 : 0);
  if (copy) TRY(schedule_panels(schedule, context, *copy, width, !own_keys));
  // While its name is the only such one: the scores' own start will be called so, too.
  if (!parts.start.empty()) TRY(schedule_rows(schedule, context, {parts.start}, around_row));
  TRY(schedule_scores(schedule, context, parts, count, copies));
  std::vector<std::string> by_row = parts.softmax;
  by_row.push_back(parts.weights);
  by_row.insert(by_row.end(), parts.totals.begin(), parts.totals.end());
  TRY(schedule_rows(schedule, context, by_row, around_row));
  const std::string follows = parts.output == parts.values ? "" : parts.output;
  if (!is_int(parts.mixed->shape.back(), 1))
    TRY(tile_in_block(schedule, context, "values", parts.values, count, follows));
  else if (!follows.empty())
    TRY(schedule_rows(schedule, context, {follows}, around_row));
  if (!own_keys) outer.push_back(rows);
  if (!terms || *terms >= 4 * parallel_work) try_parallel(schedule, outer);
  return Outcome();
}

}  // namespace lathe::schedule
