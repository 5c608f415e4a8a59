// For tests of hostile programs: a program with every instruction in it, to be damaged, and a run of whatever came of
// it.
#pragma once

#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {

// A program with every instruction in it. Kernels touch nothing, as a damaged program may hand them too little memory.
inline void write_everything(TestArtifact& made) {
  made.weights.resize(256);
  made.kernels = {[](const LatheServices*, void*, void* const* buffers, const int64_t* scalars) {
    return static_cast<int32_t>((buffers[0] == nullptr) + 0 * scalars[0]);
  }};
  made.runtime_kernels = {{"pass", [](const LatheRuntimeCall* call) {
                             for (int64_t i = 0; i < call->output_count; ++i)
                               call->outputs[i] = i < call->input_count ? call->values->retain(call->inputs[i])
                                                                        : call->values->make_scalar(i);
                             return int32_t{0};
                           }}};
  using abi::FunctionWriter;
  using abi::Opcode;
  using abi::ProgramWriter;
  using abi::ValueKind;
  ProgramWriter p;
  const auto imm = [&](int64_t value) { return p.immediate(value); };
  p.input({.name = "x", .dtype = i64, .dims = {{-1, "N"}, {3}}});
  p.output({.name = "y", .dtype = i64, .dims = {{-1, "N"}, {3}}});
  p.output({.name = "s", .kind = ValueKind::scalar});
  p.output({.name = "q", .kind = ValueKind::sequence});
  p.output({.name = "w", .kind = ValueKind::strings});
  p.output({.name = "u", .kind = ValueKind::tuple});
  p.output({.name = "o", .kind = ValueKind::optional});
  const uint32_t constant = p.constant({.name = "c", .dtype = i64, .shape = {3}, .offset = 64, .bytes = 24});
  const uint32_t strings = p.string_constant("words", {2}, {"ab", "cde"});
  const uint32_t kernel = p.kernel({.name = "kernel", .buffer_count = 2, .scalar_count = 1});
  const uint32_t pass = p.runtime_kernel("pass");
  const uint32_t slice = p.slice("attributes", 10);
  const uint32_t arena = p.arena({.bytes = 4096});
  const uint32_t planned = p.storage({.index = arena, .offset = 1024, .bytes = 1024});
  const uint32_t dynamic = p.storage({.kind = abi::StorageKind::dynamic});
  const uint32_t out = p.storage({.kind = abi::StorageKind::output});
  FunctionWriter f = p.function("main");
  FunctionWriter g = p.function("twice");
  const uint32_t ga = g.parameter(ValueKind::scalar), gb = g.reg(ValueKind::scalar);
  g.emit(Opcode::scalar_add, {gb, ga, ga});
  g.emit(Opcode::return_values, {1, gb});
  const uint32_t x = f.parameter(ValueKind::tensor, i64, 2);
  const uint32_t n = f.reg(ValueKind::scalar), s = f.reg(ValueKind::scalar), i = f.reg(ValueKind::scalar),
                 c = f.reg(ValueKind::scalar);
  const uint32_t t = f.reg(ValueKind::tensor, i64, 2), y = f.reg(ValueKind::tensor, i64, 2),
                 k = f.reg(ValueKind::tensor, i64, 1), d = f.reg(ValueKind::tensor, i64, 2),
                 v = f.reg(ValueKind::tensor, i64, 1), h = f.reg(ValueKind::tensor, i64, 1);
  const uint32_t w = f.reg(ValueKind::strings), w2 = f.reg(ValueKind::strings), w3 = f.reg(ValueKind::strings);
  const uint32_t u = f.reg(ValueKind::tuple), q = f.reg(ValueKind::sequence), q2 = f.reg(ValueKind::sequence),
                 o = f.reg(ValueKind::optional);
  const uint32_t numbers = f.reg(ValueKind::tensor, {kDLOpaqueHandle, 64, 1}, 1);
  f.emit(Opcode::match_shape, {x, p.text("x"), 2, abi::absent, imm(3)}, "Match");
  f.emit(Opcode::read_dim, {n, x, imm(0)});
  f.emit(Opcode::read_rank, {s, x});
  f.emit(Opcode::assert_true, {s, p.text("rank")});
  f.emit(Opcode::assert_numbers, {s, p.text("rank % of %"), 2, s, n});
  for (const Opcode opcode : {Opcode::scalar_add, Opcode::scalar_subtract, Opcode::scalar_multiply,
                              Opcode::scalar_floor_divide, Opcode::scalar_floor_modulo, Opcode::scalar_minimum,
                              Opcode::scalar_maximum, Opcode::scalar_equal, Opcode::scalar_not_equal,
                              Opcode::scalar_less, Opcode::scalar_less_equal, Opcode::scalar_and, Opcode::scalar_or})
    f.emit(opcode, {c, n, imm(2)});
  f.emit(Opcode::scalar_select, {c, c, n, imm(1)});
  f.emit(Opcode::scalar_multiply, {c, n, imm(24)});
  f.emit(Opcode::reserve_storage, {dynamic, c});
  f.emit(Opcode::alloc_tensor, {d, dynamic, 2, n, imm(3)});
  f.emit(Opcode::alloc_tensor, {t, planned, 2, n, imm(3)});
  f.emit(Opcode::alloc_tensor, {h, abi::absent, 1, imm(5)});
  f.emit(Opcode::alloc_tensor, {y, out, 2, n, imm(3)});
  f.emit(Opcode::load_constant, {k, constant});
  f.emit(Opcode::load_constant, {w, strings});
  f.emit(Opcode::copy, {d, x});
  f.emit(Opcode::copy, {y, d});
  f.emit(Opcode::view, {v, x, imm(0), 1, imm(3)});
  f.emit(Opcode::load_scalar, {s, k, imm(1)});
  f.emit(Opcode::store_scalar, {h, imm(4), s});
  f.emit(Opcode::call_kernel, {kernel, 2, v, h, 1, n}, "Kernel");
  f.emit(Opcode::call_function, {1, 1, s, 1, s});
  f.emit(Opcode::make_sequence, {q, 2, v, h});
  const uint32_t body = f.label(), end = f.label(), yes = f.label(), no = f.label();
  f.emit(Opcode::loop_begin, {i, imm(0), imm(4), end});
  f.bind(body);
  f.emit(Opcode::sequence_insert, {q, q, i, h});
  f.emit(Opcode::loop_next, {i, imm(4), body});
  f.bind(end);
  f.emit(Opcode::sequence_erase, {q2, q, imm(-1)});
  f.emit(Opcode::sequence_at, {h, q, imm(1)});
  f.emit(Opcode::sequence_length, {c, q2});
  f.emit(Opcode::make_optional, {o, h});
  f.emit(Opcode::optional_has, {c, o});
  f.emit(Opcode::branch, {c, yes, no});
  f.bind(yes);
  f.emit(Opcode::optional_get, {h, o});
  f.emit(Opcode::jump, {no});
  f.bind(no);
  f.emit(Opcode::alloc_strings, {w2, 1, imm(2)});
  f.emit(Opcode::copy_strings, {w3, w});
  f.emit(Opcode::take_strings, {numbers, w3});
  f.emit(Opcode::give_strings, {w3, numbers});
  f.emit(Opcode::call_runtime_kernel, {pass, slice, 2, w3, h, 2, w2, h}, "Pass");
  f.emit(Opcode::make_tuple, {u, 3, h, s, w2});
  f.emit(Opcode::tuple_get, {s, u, imm(1)});
  f.emit(Opcode::move, {q2, q});
  f.emit(Opcode::kill, {t});
  f.emit(Opcode::return_values, {6, y, s, q2, w2, u, o});
  p.finish_function(std::move(f));
  p.finish_function(std::move(g));
  made.program = p.finish();
}

// Opens and runs whatever this is; true when it ran to its end.
inline bool try_to_run(TestArtifact& artifact) {
  const Model model = open(artifact);
  if (model == nullptr) return false;
  const Context context = context_of(model, {.threads = 1, .max_memory = 16 << 20, .max_steps = 2000});
  if (context == nullptr) return false;
  HostTensor<int64_t> x(i64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Value value(lathe_value_from_tensor(&x.view));
  const int inputs = lathe_input_count(model.get()), outputs = lathe_output_count(model.get());
  if (inputs > 16 || outputs > 1000) return false;
  return !run_values(context, std::vector<LatheValue*>(static_cast<size_t>(inputs), value.get()), outputs).empty();
}

}  // namespace lathe::runtime::testing
