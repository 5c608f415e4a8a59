#include "schedule/instruction.h"

#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "tir/script/dialect.h"

namespace lathe::schedule {

namespace {

using Outputs = Result<std::vector<Argument>>;

Diagnostic wrong(const Instruction& instruction, std::string_view what) {
  return refuse(codes::trace, fmt::format("instruction '{}' of the trace {}", instruction.kind->name, what));
}

// The input number `index` as T.
template <class T>
Result<T> input(const Instruction& instruction, size_t index) {
  if (index < instruction.inputs.size())
    if (const T* value = instruction.inputs[index].get<T>()) return *value;
  return wrong(instruction, fmt::format("has no argument {} of the expected type", index));
}

const Argument* attribute(const Instruction& instruction, std::string_view name) {
  for (const auto& [key, value] : instruction.attributes)
    if (key == name) return &value;
  return nullptr;
}

template <class T>
T attribute_or(const Instruction& instruction, std::string_view name, T otherwise) {
  const Argument* found = attribute(instruction, name);
  const T* value = found ? found->get<T>() : nullptr;
  return value ? *value : otherwise;
}

// The numbers of a list; empty where there is none of that name.
std::vector<int64_t> integers(const Instruction& instruction, std::string_view name) {
  std::vector<int64_t> list;
  for (const Argument& item : attribute_or(instruction, name, Argument::List{}))
    if (const auto* value = item.get<int64_t>()) list.push_back(*value);
  return list;
}

std::vector<double> reals(const Instruction& instruction, std::string_view name) {
  std::vector<double> list;
  for (const Argument& item : attribute_or(instruction, name, Argument::List{})) {
    if (const auto* value = item.get<double>()) list.push_back(*value);
    if (const auto* whole = item.get<int64_t>()) list.push_back(static_cast<double>(*whole));
  }
  return list;
}

Result<Factor> factor(const Instruction& instruction, const Argument& argument) {
  if (std::holds_alternative<std::monostate>(argument.data)) return Factor();
  if (const auto* value = argument.get<int64_t>()) return Factor(*value);
  if (const auto* value = argument.get<ExprRV>()) return Factor(*value);
  return wrong(instruction, "has a factor that is no number");
}

Result<std::vector<Factor>> factors(const Instruction& instruction) {
  const Argument* list = attribute(instruction, "factors");
  if (!list || !list->get<Argument::List>()) return wrong(instruction, "has no factors");
  std::vector<Factor> result;
  for (const Argument& item : *list->get<Argument::List>()) result.push_back(TRY(factor(instruction, item)));
  return result;
}

Result<std::vector<LoopRV>> loops(const Instruction& instruction) {
  std::vector<LoopRV> result;
  for (size_t i = 0; i < instruction.inputs.size(); ++i) result.push_back(TRY(input<LoopRV>(instruction, i)));
  return result;
}

// One block, or a list of them.
Result<std::vector<BlockRV>> blocks(const Instruction& instruction, const Argument* given) {
  if (const BlockRV* one = given ? given->get<BlockRV>() : nullptr) return std::vector<BlockRV>{*one};
  const auto* list = given ? given->get<Argument::List>() : nullptr;
  if (!list) return wrong(instruction, "has neither a block nor a list of them");
  std::vector<BlockRV> result;
  for (const Argument& item : *list) {
    const BlockRV* block = item.get<BlockRV>();
    if (!block) return wrong(instruction, "has something else than blocks in its list");
    result.push_back(*block);
  }
  return result;
}

template <class T>
std::vector<Argument> outputs(const std::vector<T>& handles) {
  return {handles.begin(), handles.end()};
}

ir::Value value_of(const Argument& argument) {
  return std::visit(
      [](const auto& v) -> ir::Value {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                      std::is_same_v<T, std::string>)
          return v;
        else
          return {};
      },
      argument.data);
}

bool on_loop(const Instruction& instruction) {
  return !instruction.inputs.empty() && instruction.inputs[0].get<LoopRV>();
}

// ["read", 0]
Result<BufferIndex> buffer_index(const Instruction& instruction, size_t index) {
  const auto list = TRY(input<Argument::List>(instruction, index));
  const std::string* kind = list.size() == 2 ? list[0].get<std::string>() : nullptr;
  const int64_t* number = kind ? list[1].get<int64_t>() : nullptr;
  if (!number || (*kind != "read" && *kind != "write")) return wrong(instruction, "names no buffer");
  return BufferIndex{*kind == "write", *number};
}

Result<IndexMap> index_map(const Instruction& instruction, std::string_view name = "index_map") {
  const Argument* found = attribute(instruction, name);
  if (const IndexMap* map = found ? found->get<IndexMap>() : nullptr) return *map;
  return wrong(instruction, "has no index map");
}

bool preserves_units(const Instruction& instruction) { return attribute_or(instruction, "preserve_unit_iters", true); }

// Rows for methods of one shape.
template <auto Method>
Outputs on_one_loop(Schedule& s, const Instruction& i) {
  TRY((s.*Method)(TRY(input<LoopRV>(i, 0))));
  return std::vector<Argument>{};
}
template <auto Method>
Outputs on_one_block(Schedule& s, const Instruction& i) {
  TRY((s.*Method)(TRY(input<BlockRV>(i, 0))));
  return std::vector<Argument>{};
}
template <auto Method>
Outputs handles_of_block(Schedule& s, const Instruction& i) {
  return outputs(TRY((s.*Method)(TRY(input<BlockRV>(i, 0)))));
}
template <auto Method>
Outputs placed_at(Schedule& s, const Instruction& i) {
  TRY((s.*Method)(TRY(input<BlockRV>(i, 0)), TRY(input<LoopRV>(i, 1)), attribute_or(i, "preserve_unit_loops", false),
                  attribute_or(i, "index", int64_t{-1})));
  return std::vector<Argument>{};
}
template <auto Method>
Outputs cached(Schedule& s, const Instruction& i) {
  const Argument* consumers = attribute(i, "consumer_blocks");
  return std::vector<Argument>{
      TRY((s.*Method)(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)), TRY(input<std::string>(i, 2)),
                      consumers ? TRY(blocks(i, consumers)) : std::vector<BlockRV>{}))};
}

template <auto Method>
Outputs cached_at(Schedule& s, const Instruction& i) {
  return std::vector<Argument>{TRY((s.*Method)(TRY(input<LoopRV>(i, 0)), TRY(input<BlockRV>(i, 1)),
                                               TRY(input<int64_t>(i, 2)), TRY(input<std::string>(i, 3))))};
}
template <auto Method>
Outputs cached_by_map(Schedule& s, const Instruction& i) {
  return std::vector<Argument>{TRY((s.*Method)(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)),
                                               TRY(input<std::string>(i, 2)), TRY(index_map(i))))};
}

const std::vector<InstructionKind> kinds{
    {"work_on",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.work_on(TRY(input<std::string>(i, 0))));
       return std::vector<Argument>{};
     }},
    {"sample_categorical",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{
           TRY(s.sample_categorical(integers(i, "candidates"), reals(i, "probs"),
                                    attribute_or(i, "decision", int64_t{-1}), attribute_or(i, "name", std::string())))};
     }},
    {"sample_perfect_tile",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return outputs(
           TRY(s.sample_perfect_tile(TRY(input<LoopRV>(i, 0)), attribute_or(i, "n", int64_t{0}),
                                     attribute_or(i, "max_innermost_factor", int64_t{16}), integers(i, "decision"))));
     },
     true},
    {"sample_partitioned_tile",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return outputs(TRY(s.sample_partitioned_tile(
           TRY(input<LoopRV>(i, 0)), attribute_or(i, "n", int64_t{0}), attribute_or(i, "partition_pos", int64_t{0}),
           attribute_or(i, "innerpart_factor", int64_t{1}), integers(i, "decision"))));
     },
     true},
    {"sample_compute_location",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{TRY(
           s.sample_compute_location(TRY(input<BlockRV>(i, 0)), attribute_or(i, "decision", Schedule::root_location)))};
     }},
    {"get_block",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{
           TRY(s.get_block(TRY(input<std::string>(i, 0)), attribute_or(i, "func_name", std::string())))};
     }},
    {"get_loops", handles_of_block<&Schedule::get_loops>, true},
    {"get_child_blocks",
     [](Schedule& s, const Instruction& i) -> Outputs {
       if (on_loop(i)) return outputs(TRY(s.get_child_blocks(TRY(input<LoopRV>(i, 0)))));
       return outputs(TRY(s.get_child_blocks(TRY(input<BlockRV>(i, 0)))));
     },
     true},
    {"get_producers", handles_of_block<&Schedule::get_producers>, true},
    {"get_consumers", handles_of_block<&Schedule::get_consumers>, true},
    {"get_output_blocks", handles_of_block<&Schedule::get_output_blocks>, true},
    {"split",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return outputs(TRY(s.split(TRY(input<LoopRV>(i, 0)), TRY(factors(i)),
                                  attribute_or(i, "disable_predication", false), preserves_units(i))));
     },
     true},
    {"fuse",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{TRY(s.fuse(TRY(loops(i)), preserves_units(i)))};
     }},
    {"reorder",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.reorder(TRY(loops(i))));
       return std::vector<Argument>{};
     }},
    {"merge",
     [](Schedule& s, const Instruction& i) -> Outputs { return std::vector<Argument>{TRY(s.merge(TRY(loops(i))))}; }},
    {"join",
     [](Schedule& s, const Instruction& i) -> Outputs { return std::vector<Argument>{TRY(s.join(TRY(loops(i))))}; }},
    {"loop_partition",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return outputs(TRY(s.loop_partition(TRY(input<LoopRV>(i, 0)), TRY(factors(i)), preserves_units(i))));
     },
     true},
    {"peel",
     [](Schedule& s, const Instruction& i) -> Outputs {
       if (i.inputs.size() < 2) return wrong(i, "has no multiple");
       return outputs(TRY(s.peel(TRY(input<LoopRV>(i, 0)), TRY(factor(i, i.inputs[1])))));
     },
     true},
    {"strip_mine",
     [](Schedule& s, const Instruction& i) -> Outputs {
       if (i.inputs.size() < 2) return wrong(i, "has no size");
       return outputs(TRY(s.strip_mine(TRY(input<LoopRV>(i, 0)), TRY(factor(i, i.inputs[1])))));
     },
     true},
    {"add_unit_loop",
     [](Schedule& s, const Instruction& i) -> Outputs {
       if (on_loop(i)) return std::vector<Argument>{TRY(s.add_unit_loop(TRY(input<LoopRV>(i, 0))))};
       return std::vector<Argument>{TRY(s.add_unit_loop(TRY(input<BlockRV>(i, 0))))};
     }},
    {"parallel", on_one_loop<&Schedule::parallel>},
    {"vectorize", on_one_loop<&Schedule::vectorize>},
    {"unroll", on_one_loop<&Schedule::unroll>},
    {"bind",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.bind(TRY(input<LoopRV>(i, 0)), TRY(input<std::string>(i, 1))));
       return std::vector<Argument>{};
     }},
    {"reorder_block_iter_var",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.reorder_block_iter_var(TRY(input<BlockRV>(i, 0)), integers(i, "new_order")));
       return std::vector<Argument>{};
     }},
    {"blockize",
     [](Schedule& s, const Instruction& i) -> Outputs {
       const bool preserve = preserves_units(i);
       if (on_loop(i)) return std::vector<Argument>{TRY(s.blockize(TRY(input<LoopRV>(i, 0)), preserve))};
       return std::vector<Argument>{
           TRY(s.blockize(TRY(blocks(i, i.inputs.empty() ? nullptr : &i.inputs[0])), preserve))};
     }},
    {"compute_at", placed_at<&Schedule::compute_at>},
    {"reverse_compute_at", placed_at<&Schedule::reverse_compute_at>},
    {"compute_inline", on_one_block<&Schedule::compute_inline>},
    {"reverse_compute_inline", on_one_block<&Schedule::reverse_compute_inline>},
    {"cache_read", cached<&Schedule::cache_read>},
    {"cache_write", cached<&Schedule::cache_write>},
    {"read_at", cached_at<&Schedule::read_at>},
    {"write_at", cached_at<&Schedule::write_at>},
    {"cache_inplace",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return outputs(
           TRY(s.cache_inplace(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)), TRY(input<std::string>(i, 2)))));
     },
     true},
    {"reindex_cache_read", cached_by_map<&Schedule::reindex_cache_read>},
    {"reindex_cache_write", cached_by_map<&Schedule::reindex_cache_write>},
    {"storage_align",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.storage_align(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)), attribute_or(i, "axis", int64_t{0}),
                           attribute_or(i, "factor", int64_t{0}), attribute_or(i, "offset", int64_t{0})));
       return std::vector<Argument>{};
     }},
    {"set_axis_separator",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.set_axis_separator(TRY(input<BlockRV>(i, 0)), TRY(buffer_index(i, 1)), integers(i, "axis_separators")));
       return std::vector<Argument>{};
     }},
    {"cache_index",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return outputs(TRY(s.cache_index(TRY(input<BlockRV>(i, 0)), TRY(input<std::string>(i, 1)),
                                        attribute_or(i, "cse_thresh", int64_t{0}))));
     },
     true},
    {"rolling_buffer",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.rolling_buffer(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1))));
       return std::vector<Argument>{};
     }},
    {"annotate_buffer_access",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.annotate_buffer_access(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)), TRY(input<std::string>(i, 2)),
                                    TRY(index_map(i, "gen_new_ranges"))));
       return std::vector<Argument>{};
     }},
    {"enter_postproc",
     [](Schedule& s, const Instruction&) -> Outputs {
       s.enter_postproc();
       return std::vector<Argument>{};
     }},
    {"prefetch",
     [](Schedule& s, const Instruction& i) -> Outputs {
       const Prefetch what{.begin = attribute_or(i, "begin", int64_t{0}),
                           .end = attribute_or(i, "end", int64_t{1}),
                           .of = attribute_or(i, "of", int64_t{1}),
                           .level = attribute_or(i, "level", int64_t{2}),
                           .in_turn = attribute_or(i, "in_turn", false),
                           .turns = attribute_or(i, "turns", int64_t{1})};
       return std::vector<Argument>{TRY(s.prefetch(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)),
                                                   TRY(input<LoopRV>(i, 2)), TRY(input<LoopRV>(i, 3)), what))};
     }},
    {"unsafe_hide_buffer_access",
     [](Schedule& s, const Instruction& i) -> Outputs {
       std::vector<int64_t> numbers;
       for (const Argument& item : TRY(input<Argument::List>(i, 2)))
         if (const auto* value = item.get<int64_t>()) numbers.push_back(*value);
       TRY(s.unsafe_hide_buffer_access(TRY(input<BlockRV>(i, 0)), TRY(input<std::string>(i, 1)), numbers));
       return std::vector<Argument>{};
     }},
    {"unsafe_set_dtype",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.unsafe_set_dtype(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)), TRY(input<std::string>(i, 2))));
       return std::vector<Argument>{};
     }},
    {"tensorize",
     [](Schedule& s, const Instruction& i) -> Outputs {
       const std::string intrin = TRY(input<std::string>(i, 1));
       const bool preserve = preserves_units(i);
       if (on_loop(i))
         TRY(s.tensorize(TRY(input<LoopRV>(i, 0)), intrin, preserve));
       else
         TRY(s.tensorize(TRY(input<BlockRV>(i, 0)), intrin, preserve));
       return std::vector<Argument>{};
     }},
    {"decompose_padding",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{TRY(s.decompose_padding(TRY(input<BlockRV>(i, 0)), TRY(input<LoopRV>(i, 1))))};
     }},
    {"split_padding",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return outputs(TRY(s.split_padding(TRY(input<BlockRV>(i, 0)))));
     },
     true},
    {"pad_einsum",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.pad_einsum(TRY(input<BlockRV>(i, 0)), integers(i, "padding")));
       return std::vector<Argument>{};
     }},
    {"reindex",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{TRY(s.reindex(TRY(input<BlockRV>(i, 0)), TRY(buffer_index(i, 1))))};
     }},
    {"transform_layout",
     [](Schedule& s, const Instruction& i) -> Outputs {
       const Argument* pad = attribute(i, "pad_value");
       TRY(s.transform_layout(TRY(input<BlockRV>(i, 0)), TRY(buffer_index(i, 1)), TRY(index_map(i)),
                              pad ? value_of(*pad) : ir::Value(),
                              attribute_or(i, "assume_injective_transform", false)));
       return std::vector<Argument>{};
     }},
    {"transform_block_layout",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.transform_block_layout(TRY(input<BlockRV>(i, 0)), TRY(index_map(i))));
       return std::vector<Argument>{};
     }},
    {"set_scope",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.set_scope(TRY(input<BlockRV>(i, 0)), TRY(input<int64_t>(i, 1)), TRY(input<std::string>(i, 2))));
       return std::vector<Argument>{};
     }},
    {"decompose_reduction",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{TRY(s.decompose_reduction(TRY(input<BlockRV>(i, 0)), TRY(input<LoopRV>(i, 1))))};
     }},
    {"fuse_reduction_epilogue",
     [](Schedule& s, const Instruction& i) -> Outputs {
       TRY(s.fuse_reduction_epilogue(TRY(input<BlockRV>(i, 0)), TRY(input<BlockRV>(i, 1))));
       return std::vector<Argument>{};
     }},
    {"rfactor",
     [](Schedule& s, const Instruction& i) -> Outputs {
       return std::vector<Argument>{
           TRY(s.rfactor(TRY(input<LoopRV>(i, 0)), attribute_or(i, "factor_axis", int64_t{0})))};
     }},
    {"annotate",
     [](Schedule& s, const Instruction& i) -> Outputs {
       if (i.inputs.size() < 3) return wrong(i, "has no value");
       const std::string key = TRY(input<std::string>(i, 1));
       if (on_loop(i))
         TRY(s.annotate(TRY(input<LoopRV>(i, 0)), key, i.inputs[2]));
       else
         TRY(s.annotate(TRY(input<BlockRV>(i, 0)), key, i.inputs[2]));
       return std::vector<Argument>{};
     }},
    {"unannotate",
     [](Schedule& s, const Instruction& i) -> Outputs {
       const std::string key = TRY(input<std::string>(i, 1));
       if (on_loop(i))
         TRY(s.unannotate(TRY(input<LoopRV>(i, 0)), key));
       else
         TRY(s.unannotate(TRY(input<BlockRV>(i, 0)), key));
       return std::vector<Argument>{};
     }},
};

// The loops and blocks among the arguments, and the name of their function.
void collect_statements(const Schedule& schedule, const std::vector<Argument>& arguments, std::string& function,
                        std::vector<const ir::Node*>& statements) {
  for (const Argument& argument : arguments) {
    if (const auto* list = argument.get<Argument::List>()) collect_statements(schedule, *list, function, statements);
    const std::string where = schedule.function_of(argument);
    if (where.empty() || (!function.empty() && where != function)) continue;
    function = where;
    if (const auto* loop = argument.get<LoopRV>())
      statements.push_back(schedule.get(*loop).value_or_throw().get());
    else
      statements.push_back(schedule.get(*argument.get<BlockRV>()).value_or_throw().get());
  }
}

}  // namespace

std::string excerpt_of_refusal(const Schedule& schedule, const Instruction& instruction,
                               const support::Diagnostics& refusal) {
  std::string name, said;
  std::vector<const ir::Node*> statements;
  collect_statements(schedule, instruction.inputs, name, statements);
  if (name.empty()) return {};
  const Function function = schedule.mod().find_as<PrimFunc>(name);
  for (const Diagnostic& problem : refusal) {
    said += problem.message;
    for (const support::Note& note : problem.notes) said += note.message;
  }
  each_statement(function->body, [&](const Stmt& s) {
    if (const auto* block = s.as<Block>(); block && said.find(name_of(*block)) != std::string::npos)
      statements.push_back(block);
  });
  return excerpt(function, name, statements);
}

const std::vector<InstructionKind>& instruction_kinds() { return kinds; }

const InstructionKind* find_instruction_kind(std::string_view name) {
  for (const InstructionKind& kind : kinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

}  // namespace lathe::schedule
