// The first elements along an axis in ascending or descending order, kept in order while the elements pass; of half of
// the axis and more, all are sorted.
#include "ops/build/radix_sort.h"

namespace lathe::ops::build {

namespace {

// The program of one block over the rows, which lie along an axis.
class Selection {
 public:
  // Writes the places, and the values where there is a buffer for them: then as many as are inserted.
  Selection(ir::Buffer x, ir::Buffer places, ir::Buffer values, Expr count, int64_t axis, bool descending)
      : x_(std::move(x)),
        places_(std::move(places)),
        values_(std::move(values)),
        count_(std::move(count)),
        axis_(axis),
        descending_(descending),
        room_(relax::simplified(ir::max(count_, ir::int64(least_room)))),
        memory_(x_->dtype, takes_most() ? extent() : room_),
        best_keys_(scratch("best_keys", {ir::int64(2), relax::simplified(ir::max(count_, ir::int64(1)))},
                           memory_.keys->dtype)),
        best_places_(scratch("best_places", best_keys_->shape, DType::int64())),
        limit_(scratch("limit", {ir::int64(1)}, memory_.keys->dtype)),
        near_(scratch("near_keys", {ir::int64(together)}, memory_.keys->dtype)),
        numbers_(scratch("selecting", {ir::int64(number_count)}, DType::int64())) {}

  tir::Stmt statement() const {
    Shape rows = x_->shape;
    rows.erase(rows.begin() + axis_);
    return block_over(
        rows, "top_k",
        [&](const Indices& row) {
          Regions touched{{line(x_, row), line(places_, row)}, {line(places_, row)}};
          if (values_) {
            touched.reads.push_back(line(values_, row));
            touched.writes.push_back(line(values_, row));
          } else {
            touched.locals = memory_.all();
            if (!takes_most())
              touched.locals.insert(touched.locals.end(), {best_keys_, best_places_, limit_, near_, numbers_});
          }
          return touched;
        },
        [&](const Indices& row) {
          return values_ ? insertion(row) : takes_most() ? all_in_order(row) : selection(row);
        });
  }

 private:
  // So many at least have room until they are put between the best; so many are looked at together.
  static constexpr int64_t least_room = 64, together = 16;
  enum : int64_t { next, filled, taken, turn, number_count };

  Expr extent() const { return x_->shape[static_cast<size_t>(axis_)]; }
  // Half of the row or more, or some of a short one.
  bool takes_most() const {
    constexpr int64_t is_short = 64;
    const auto known = ir::as_int(count_), all = ir::as_int(extent());
    return known && all ? 2 * *known >= *all || *all <= is_short : count_ == extent();
  }

  tir::BufferRegion line(const ir::Buffer& buffer, const Indices& row) const {
    std::vector<std::optional<Expr>> at(row.begin(), row.end());
    at.insert(at.begin() + axis_, std::nullopt);
    return part_of_buffer(buffer, at);
  }
  VectorAccess vector(const ir::Buffer& buffer, const Indices& row) const {
    return {buffer, Indices(row.begin(), row.begin() + axis_), Indices(row.begin() + axis_, row.end())};
  }

  Expr is_better(const Expr& a, const Expr& than) const {
    return descending_ ? comes_before(than, a) : comes_before(a, than);
  }

  // The list of the best so far is kept in order; from its end a place is made for each element that is better than the
  // last of a full list.
  tir::Stmt insertion(const Indices& row) const {
    const VectorAccess x = vector(x_, row), values = vector(values_, row), places = vector(places_, row);
    const auto make_place = [&](const Expr& j, const Expr& element) {
      return loops_over({count_}, [&](const Indices& step) {
        const Expr r = count_ - 1 - step[0];
        const Expr before = ir::max(r - 1, ir::int64(0));
        const auto both = [&](const Expr& value, const Expr& index) {
          // The value last: the conditions around read it.
          return tir::seq({places.set(r, index), values.set(r, value)});
        };
        const tir::Stmt shift = both(values[before], places[before]), insert = both(element, j);
        const tir::Stmt at_end = when(r < j, when(is_better(element, values[r]), insert), insert);
        return when(r <= j, when(r > 0, when(is_better(element, values[before]), shift, at_end), at_end));
      });
    };
    return loops_over({extent()}, [&](const Indices& j) {
      const Expr element = x[j[0]];
      return when(ir::if_then_else(j[0] < count_, ir::boolean(true), is_better(element, values[count_ - 1])),
                  make_place(j[0], element));
    });
  }

  // All of the row in order, of which the first are taken.
  tir::Stmt all_in_order(const Indices& row) const {
    const VectorAccess x = vector(x_, row), places = vector(places_, row);
    const RadixSort sort(memory_);
    const tir::Stmt fill = over(extent(), [&](const Places& at) {
      const Expr i = at(ir::int64(0));
      return sort.put(i, order_key(x[i], descending_), i);
    });
    const tir::Stmt result = loops_over({count_}, [&](const Indices& i) { return places.set(i[0], sort.place(i[0])); });
    return tir::seq({sort.start(), fill, sort.sort(extent()), result});
  }

  // The best so far are kept in order. What is better than the last of them is gathered, and put in order and between
  // them when there is no more room for it.
  tir::Stmt selection(const Indices& row) const {
    const VectorAccess x = vector(x_, row), places = vector(places_, row);
    const VectorAccess r{numbers_, {}}, limit{limit_, {}}, near{near_, {}};
    const VectorAccess best{best_keys_, {r[turn]}}, best_places{best_places_, {r[turn]}};
    const VectorAccess better{best_keys_, {1 - r[turn]}}, better_places{best_places_, {1 - r[turn]}};
    const RadixSort sort(memory_);
    const auto key = [&](const Expr& j) { return order_key(x[j], descending_); };
    const tir::Stmt set_limit = limit.set(0, best[ir::max(count_ - 1, ir::int64(0))]);
    const auto put_first = [&](const Places& at) {
      const Expr i = at(ir::int64(0));
      return sort.put(i, key(i), i);
    };
    const tir::Stmt begin = tir::seq(
        {sort.start(), over(count_, put_first), sort.sort(count_), r.set(turn, ir::int64(0)),
         r.set(filled, ir::int64(0)), r.set(next, count_),
         loops_over({count_},
                    [&](const Indices& i) {
                      return tir::seq({best.set(i[0], sort.key(i[0])), best_places.set(i[0], sort.place(i[0]))});
                    }),
         set_limit});
    // The next ones' keys. What is no better goes where the next one will.
    const auto look_at = [&](const Expr& number) {
      const tir::Stmt keys =
          over(number, [&](const Places& at) { return near.set(at(ir::int64(0)), key(at(r[next]))); });
      const tir::Stmt keep = loops_over({number}, [&](const Indices& i) {
        const Expr behind = ir::select(near[i[0]] < limit[0], r[filled] + 1, r[filled]);
        return tir::seq({sort.put(r[filled], near[i[0]], r[next] + i[0]), r.set(filled, behind)});
      });
      const bool is_group = ir::is_int(number, together);
      return tir::seq({keys, is_group ? when(any_is_better(limit[0]), keep) : keep, r.set(next, r[next] + number)});
    };
    const Expr left = extent() - r[next];
    const tir::Stmt gather = ir::make<tir::While>(ir::logical_and(r[next] < extent(), r[filled] <= room_ - together),
                                                  when(left >= together, look_at(ir::int64(together)), look_at(left)));
    // Behind the last one gathered stands what comes behind all.
    const DType word = memory_.keys->dtype;
    const tir::Stmt end =
        sort.put(r[filled], ir::call(word, ir::intrinsic::bitwise_not, {ir::constant(word, 0)}), r[next]);
    const tir::Stmt merge = loops_over({count_}, [&](const Indices& i) {
      const Expr kept = i[0] - r[taken], is_new = sort.key(r[taken]) < best[kept];
      // The number last: what is chosen goes by it.
      return tir::seq({better.set(i[0], ir::min(sort.key(r[taken]), best[kept])),
                       better_places.set(i[0], ir::select(is_new, sort.place(r[taken]), best_places[kept])),
                       r.set(taken, ir::select(is_new, r[taken] + 1, r[taken]))});
    });
    const tir::Stmt round = tir::seq({gather, sort.sort(r[filled], room_), end, r.set(taken, ir::int64(0)), merge,
                                      r.set(turn, 1 - r[turn]), r.set(filled, ir::int64(0)), set_limit});
    const tir::Stmt result =
        loops_over({count_}, [&](const Indices& i) { return places.set(i[0], best_places[i[0]]); });
    return tir::seq({begin, ir::make<tir::While>(r[next] < extent(), round), result});
  }

  // Whether one of the keys at hand is below the limit.
  Expr any_is_better(const Expr& limit) const {
    return any_lane(ir::load(near_, {ir::make<ir::Ramp>(ir::int64(0), ir::int64(1), together)}) < limit);
  }

  // In vectors, where the row lies together in whole bytes. `body` is given what makes a place of the one that it
  // begins at, several at once in a vector.
  using Places = std::function<Expr(const Expr& begin)>;
  tir::Stmt over(const Expr& extent, const std::function<tir::Stmt(const Places&)>& body) const {
    const auto one_by_one = [&](const Expr& first) {
      return loops_over({relax::simplified(extent - first)}, [&](const Indices& i) {
        return body([&](const Expr& begin) { return begin + first + i[0]; });
      });
    };
    const bool is_row = axis_ + 1 == static_cast<int64_t>(x_->shape.size());
    if (!is_row || x_->dtype.is_bool() || x_->dtype.bits < 8) return one_by_one(ir::int64(0));
    const Expr groups = relax::simplified(ir::floordiv(extent, ir::int64(together)));
    const tir::Stmt vectors = loops_over({groups}, [&](const Indices& group) {
      return body(
          [&](const Expr& begin) { return ir::make<ir::Ramp>(begin + group[0] * together, ir::int64(1), together); });
    });
    return tir::seq({vectors, one_by_one(groups * together)});
  }

  const ir::Buffer x_, places_, values_;
  const Expr count_;
  const int64_t axis_;
  const bool descending_;
  const Expr room_;
  const RadixSort::Memory memory_;
  const ir::Buffer best_keys_, best_places_;
  const ir::Buffer limit_, near_, numbers_;
};

// The places of the first elements along the axis.
Value first_places(BlockBuilder& b, const Value& x, const Expr& count, int64_t axis, bool descending) {
  Shape shape = shape_of(x);
  shape[static_cast<size_t>(axis)] = count;
  const auto build = [&](const Buffers& in, const Buffers& out) {
    return Selection(in[0], out[0], {}, count, axis, descending).statement();
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{shape, DType::int64()}}, in, build, "top_k");
  };
  return b.call_te("top_k", {x}, tensors).value_or_throw();
}

}  // namespace

Value sorted_places(BlockBuilder& b, const Value& x, int64_t axis, bool descending) {
  return first_places(b, x, shape_of(x)[static_cast<size_t>(axis)], axis, descending);
}

std::pair<Value, Value> top_k(BlockBuilder& b, const Value& x, const Expr& count, int64_t axis, bool largest) {
  constexpr int64_t a_few = 8;  // so many are inserted
  Shape shape = shape_of(x);
  const Expr extent = std::exchange(shape[static_cast<size_t>(axis)], count);
  expect_equal(b, ir::min(count, extent), count);
  if (const auto known = ir::as_int(count); !known || *known > a_few) {
    // Values that are read by their places have a gradient.
    const Value places = first_places(b, x, count, axis, largest);
    return {gather_elements(b, x, places, axis), places};
  }
  const auto build = [&](const Buffers& in, const Buffers& out) {
    return Selection(in[0], out[0], out[1], count, axis, largest).statement();
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{shape, DType::int64()}, {shape, dtype_of(x)}}, in, build, "top_k");
  };
  const Value made = b.call_te("top_k", {x}, tensors).value_or_throw();
  return {b.tuple_item(made, 1), b.tuple_item(made, 0)};
}

}  // namespace lathe::ops::build
