// Programs that keep a matrix and change it step by step: determinants by elimination, linear attention.
#include "ops/build/statements.h"

namespace lathe::ops::build {

Value determinant(BlockBuilder& b, const Value& x) {
  const Shape own = shape_of(x);
  const size_t rank = own.size();
  const Expr n = own.back();
  expect_equal(b, own[rank - 2], n);
  const Shape batch(own.begin(), own.end() - 2);
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);
  // Gauss's elimination with the largest pivot of each column, in a copy.
  const auto build = [&](const Buffers& in, const Buffers& out) {
    const ir::Buffer &result = out[0], &work = out[1], &pivot = out[2], &spare = out[3];
    return block_over(
        batch, "determinant",
        [&](const Indices& at) {
          const std::vector<std::optional<Expr>> whole(at.begin(), at.end());
          const std::vector<tir::BufferRegion> written{tir::point_region(result, at), part_of_buffer(work, whole),
                                                       tir::point_region(pivot, at), tir::point_region(spare, at)};
          std::vector<tir::BufferRegion> read = written;
          read.push_back(part_of_buffer(in[0], whole));
          return Regions{read, written};
        },
        [&](const Indices& at) {
          const auto cell = [&](const Expr& row, const Expr& column) {
            Indices i = at;
            i.push_back(row);
            i.push_back(column);
            return i;
          };
          const auto element = [&](const Expr& row, const Expr& column) { return ir::load(work, cell(row, column)); };
          const auto magnitude = [](const Expr& e) { return ir::call(ir::intrinsic::abs, e); };
          const tir::Stmt copy = loops_over({n, n}, [&](const Indices& i) {
            return store(work, ir::cast(wide, ir::load(in[0], cell(i[0], i[1]))), cell(i[0], i[1]));
          });
          const tir::Stmt eliminate = loops_over({n}, [&](const Indices& step) {
            const Expr& k = step[0];
            const Expr chosen = ir::max(ir::min(ir::load(pivot, at), n - 1), ir::int64(0));
            const tir::Stmt search = loops_over({n}, [&](const Indices& r) {
              const Expr is_better = magnitude(element(r[0], k)) > magnitude(element(chosen, k));
              return when(ir::logical_and(r[0] > k, is_better), store(pivot, r[0], at));
            });
            const tir::Stmt swap_rows = loops_over({n}, [&](const Indices& j) {
              return tir::seq({store(spare, element(k, j[0]), at), store(work, element(chosen, j[0]), cell(k, j[0])),
                               store(work, ir::load(spare, at), cell(chosen, j[0]))});
            });
            const tir::Stmt swap =
                when(ir::ne(chosen, k),
                     tir::seq({swap_rows, store(result, ir::constant(wide, 0) - ir::load(result, at), at)}));
            const Expr corner = element(k, k);
            const tir::Stmt below =
                when(ir::ne(corner, ir::constant(wide, 0)), loops_over({n, n}, [&](const Indices& i) {
                       const Expr less = ir::div(element(i[0], k), corner) * element(k, i[1]);
                       return when(ir::logical_and(i[0] > k, i[1] > k),
                                   store(work, element(i[0], i[1]) - less, cell(i[0], i[1])));
                     }));
            return tir::seq(
                {store(pivot, k, at), search, swap, below, store(result, ir::load(result, at) * element(k, k), at)});
          });
          // The interpreter wants every output written, those for work too.
          return tir::seq({copy, store(pivot, ir::int64(0), at), store(spare, ir::constant(wide, 0), at),
                           store(result, ir::constant(wide, 1), at), eliminate});
        });
  };
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{batch, wide}, {own, wide}, {batch, DType::int64()}, {batch, wide}}, in, build,
                         "determinant");
  };
  const Value all = b.call_te("determinant", {x}, tensors).value_or_throw();
  return cast(b, b.tuple_item(all, 0), dtype);
}

std::pair<Value, Value> linear_attention(BlockBuilder& b, const LinearAttentionOperands& operands,
                                         const LinearAttention& how) {
  const Shape query = shape_of(operands.query), state = shape_of(operands.state);
  const Expr &batch = query[0], &length = query[1], &d_k = state[2], &d_v = state[3];
  const int64_t times = how.query_heads / how.heads;
  const DType wide = relax::accumulation_dtype(dtype_of(operands.query));
  std::vector<Value> args{operands.query, operands.key, operands.value, operands.state};
  const size_t decay_at = operands.decay ? args.size() : 0;
  if (decay_at) args.push_back(operands.decay);
  const size_t beta_at = how.corrects ? args.size() : 0;
  if (beta_at) args.push_back(operands.beta);
  const bool one_decay = operands.decay && relax::same_extent(shape_of(operands.decay)[2], ir::int64(how.heads));
  const bool one_beta = how.corrects && ir::is_int(shape_of(operands.beta)[2], 1);
  const Expr heads = ir::int64(how.heads), zero = ir::constant(wide, 0);

  const auto build = [&](const Buffers& in, const Buffers& out) {
    const ir::Buffer &answers = out[0], &kept = out[1], &added = out[2];  // added [B, heads, d_v]
    return block_over(
        {batch, heads}, "linear_attention",
        [&](const Indices& at) {
          const std::vector<std::optional<Expr>> own{at[0], at[1]}, of_batch{at[0]};
          Regions regions;
          for (size_t k = 0; k < in.size(); ++k)
            regions.reads.push_back(part_of_buffer(in[k], k == 3 ? own : of_batch));
          // Answers of a head's queries lie together: [B, T, heads, the rest].
          regions.writes = {part_of_buffer(answers, {at[0], std::nullopt, at[1]}), part_of_buffer(kept, own),
                            part_of_buffer(added, own)};
          regions.reads.insert(regions.reads.end(), regions.writes.begin(), regions.writes.end());
          return regions;
        },
        [&](const Indices& at) {
          const Expr &image = at[0], &head = at[1];
          const auto given = [&](size_t k, const Expr& t, const Expr& column) {
            return ir::cast(wide, ir::load(in[k], {image, t, column}));
          };
          const auto cell = [&](const Expr& i, const Expr& j) { return Indices{image, head, i, j}; };
          const auto remembered = [&](const Expr& i, const Expr& j) { return ir::load(kept, cell(i, j)); };
          const tir::Stmt begin = loops_over({d_k, d_v}, [&](const Indices& i) {
            return store(kept, ir::cast(wide, ir::load(in[3], cell(i[0], i[1]))), cell(i[0], i[1]));
          });
          const tir::Stmt steps = loops_over({length}, [&](const Indices& step) {
            const Expr& t = step[0];
            std::vector<tir::Stmt> parts;
            if (decay_at)
              parts.push_back(loops_over({d_k, d_v}, [&](const Indices& i) {
                const Expr gate = given(decay_at, t, one_decay ? head : head * d_k + i[0]);
                return store(kept, remembered(i[0], i[1]) * ir::call(ir::intrinsic::exp, gate), cell(i[0], i[1]));
              }));
            const auto row = [&](const Expr& j) { return Indices{image, head, j}; };
            parts.push_back(loops_over(
                {d_v}, [&](const Indices& j) { return store(added, given(2, t, head * d_v + j[0]), row(j[0])); }));
            if (beta_at) {
              parts.push_back(loops_over({d_k, d_v}, [&](const Indices& i) {
                const Expr answer = remembered(i[0], i[1]) * given(1, t, head * d_k + i[0]);
                return store(added, ir::load(added, row(i[1])) - answer, row(i[1]));
              }));
              parts.push_back(loops_over({d_v}, [&](const Indices& j) {
                const Expr rate = given(beta_at, t, one_beta ? ir::int64(0) : head);
                return store(added, ir::load(added, row(j[0])) * rate, row(j[0]));
              }));
            }
            parts.push_back(loops_over({d_k, d_v}, [&](const Indices& i) {
              const Expr more = given(1, t, head * d_k + i[0]) * ir::load(added, row(i[1]));
              return store(kept, remembered(i[0], i[1]) + more, cell(i[0], i[1]));
            }));
            const auto answer_at = [&](const Expr& q, const Expr& j) { return Indices{image, t, head, q, j}; };
            const Expr asked = ir::int64(times);
            parts.push_back(loops_over({asked, d_v},
                                       [&](const Indices& i) { return store(answers, zero, answer_at(i[0], i[1])); }));
            parts.push_back(loops_over({asked, d_k, d_v}, [&](const Indices& i) {
              const Expr of_query = given(0, t, (head * times + i[0]) * d_k + i[1]) * ir::constant(wide, how.scale);
              const Indices to = answer_at(i[0], i[2]);
              return store(answers, ir::load(answers, to) + of_query * remembered(i[1], i[2]), to);
            }));
            return tir::seq(std::move(parts));
          });
          const tir::Stmt clear =  // written by no step where there is none
              loops_over({d_v}, [&](const Indices& j) { return store(added, zero, {image, head, j[0]}); });
          return tir::seq({begin, clear, steps});
        });
  };
  const Shape answered{batch, length, heads, ir::int64(times), d_v};
  const auto tensors = [&](const std::vector<Tensor>& in) {
    return te::extern_op({{answered, wide}, {{batch, heads, d_k, d_v}, wide}, {{batch, heads, d_v}, wide}}, in, build,
                         "linear_attention");
  };
  const Value all = b.call_te("linear_attention", std::move(args), tensors).value_or_throw();
  const Shape flat{batch, length, relax::simplified(d_v * how.query_heads)};
  return {reshape(b, b.tuple_item(all, 0), flat), b.tuple_item(all, 1)};
}

}  // namespace lathe::ops::build
