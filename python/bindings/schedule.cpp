#include "driver/verify_module.h"
#include "nodes.h"
#include "schedule/codes.h"
#include "schedule/instruction.h"

namespace lathe::python {
namespace {

using schedule::Argument;
using schedule::BlockRV;
using schedule::ExprRV;
using schedule::Instruction;
using schedule::LoopRV;
using schedule::Schedule;

// Handles cross as pairs of a kind and a number, ("loop", 3), and index maps as ("index_map", "lambda i: (i // 4, i %
// 4)"). lathe/tir/schedule/primitives.py makes objects of them.
nb::object object_of(const Argument& argument) {
  const auto handle = [](const char* kind, uint32_t index) { return nb::object(nb::make_tuple(kind, index)); };
  return std::visit(
      [&](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, LoopRV>)
          return handle("loop", v.index);
        else if constexpr (std::is_same_v<T, BlockRV>)
          return handle("block", v.index);
        else if constexpr (std::is_same_v<T, ExprRV>)
          return handle("expr", v.index);
        else if constexpr (std::is_same_v<T, std::monostate>)
          return nb::none();
        else if constexpr (std::is_same_v<T, schedule::IndexMap>)
          return nb::object(nb::make_tuple("index_map", v.text()));
        else if constexpr (std::is_same_v<T, Argument::List>) {
          nb::list items;
          for (const Argument& item : v) items.append(object_of(item));
          return nb::object(items);
        } else
          return nb::cast(v);
      },
      argument.data);
}

Argument argument_of(nb::handle object) {
  if (object.is_none()) return {};
  if (PyTuple_Check(object.ptr()) && nb::len(object) == 2 && nb::isinstance<nb::str>(object[0])) {
    const auto kind = utf8_of(nb::object(object[0]));
    if (kind == "index_map") return unwrap(schedule::parse_index_map(utf8_of(nb::object(object[1]))));
    if (kind != "loop" && kind != "block" && kind != "expr") return Argument::List{kind, argument_of(object[1])};
    const auto index = nb::cast<uint32_t>(nb::object(object[1]));
    if (kind == "loop") return LoopRV{index};
    if (kind == "block") return BlockRV{index};
    if (kind == "expr") return ExprRV{index};
  }
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    Argument::List list;
    for (nb::handle item : object) list.push_back(argument_of(item));
    return list;
  }
  const ir::Value value = value_or_throw(object);
  if (const auto* x = value.get<bool>()) return *x;
  if (const auto* x = value.get<int64_t>()) return *x;
  if (const auto* x = value.get<double>()) return *x;
  if (const auto* x = value.get<std::string>()) return *x;
  if (const auto* node = value.get<ir::NodeRef>())
    if (const auto* imm = node->as<ir::IntImm>()) return imm->value;
  throw nb::type_error("a schedule takes numbers, strings, lists and its own loops and blocks");
}

nb::list objects_of(const std::vector<Argument>& arguments) {
  nb::list list;
  for (const Argument& argument : arguments) list.append(object_of(argument));
  return list;
}

nb::dict instruction_object(const Instruction& instruction) {
  nb::dict row;
  row["kind"] = std::string(instruction.kind->name);
  row["inputs"] = objects_of(instruction.inputs);
  nb::dict attributes;
  for (const auto& [name, value] : instruction.attributes) attributes[nb::cast(name)] = object_of(value);
  row["attrs"] = attributes;
  row["outputs"] = objects_of(instruction.outputs);
  return row;
}

// What instruction_object gives, or a user made like it.
Instruction instruction_of(nb::handle object) {
  if (!nb::isinstance<nb::dict>(object))
    throw nb::type_error("an instruction is a dict with kind, inputs, attrs and outputs");
  const auto row = nb::cast<nb::dict>(object);
  const auto part = [&](const char* name, bool is_dict) {
    nb::object value = row.contains(name) ? nb::object(row[name]) : is_dict ? nb::object(nb::dict()) : nb::list();
    if (is_dict ? !nb::isinstance<nb::dict>(value) : !PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
      throw nb::type_error(fmt::format("the {} of an instruction are a {}", name, is_dict ? "dict" : "list").c_str());
    return value;
  };
  if (!row.contains("kind") || !nb::isinstance<nb::str>(row["kind"]))
    throw nb::type_error("the kind of an instruction is the name of a primitive");
  const auto name = utf8_of(nb::object(row["kind"]));
  Instruction instruction{schedule::find_instruction_kind(name), {}, {}, {}};
  if (!instruction.kind)
    unwrap(support::Status(support::Diagnostic{.code = schedule::codes::trace,
                                               .message = "there is no instruction named '" + name + "'"}));
  for (nb::handle input : part("inputs", false)) instruction.inputs.push_back(argument_of(input));
  for (const auto& [key, value] : nb::cast<nb::dict>(part("attrs", true)))
    instruction.attributes.emplace_back(utf8_of(key), argument_of(value));
  for (nb::handle output : part("outputs", false)) instruction.outputs.push_back(argument_of(output));
  return instruction;
}

schedule::Trace trace_of(nb::handle rows) {
  schedule::Trace trace;
  for (nb::handle row : rows) trace.append(instruction_of(row));
  return trace;
}

nb::list trace_rows(const schedule::Trace& trace) {
  nb::list rows;
  for (const Instruction& instruction : trace.instructions()) rows.append(instruction_object(instruction));
  return rows;
}

// `excerpts`: a refusal shows the lines of the program that it is about.
nb::object run_instruction(Schedule& schedule, const std::string& name, const nb::list& inputs,
                           const nb::dict& attributes, bool excerpts) {
  const schedule::InstructionKind* kind = schedule::find_instruction_kind(name);
  if (!kind) throw nb::attribute_error(("a schedule has no primitive '" + name + "'").c_str());
  Instruction instruction{.kind = kind, .inputs = {}, .attributes = {}, .outputs = {}};
  for (nb::handle input : inputs) instruction.inputs.push_back(argument_of(input));
  for (const auto& [key, value] : attributes) instruction.attributes.emplace_back(utf8_of(key), argument_of(value));
  support::Result<std::vector<Argument>> made = kind->run(schedule, instruction);
  if (!made && excerpts) {
    support::Diagnostics refusal = made.diagnostics();
    const std::string excerpt = schedule::excerpt_of_refusal(schedule, instruction, refusal);
    if (!excerpt.empty() && !refusal.empty()) refusal[0].note("in the program\n" + excerpt);
    made = std::move(refusal);
  }
  const nb::list outputs = objects_of(unwrap(std::move(made)));
  if (kind->returns_list) return outputs;
  return outputs.size() == 0 ? nb::none() : nb::object(outputs[0]);
}

nb::object statement_of(const Schedule& schedule, const std::string& kind, uint32_t index) {
  if (kind == "loop") return node_object(unwrap(schedule.get(LoopRV{index})));
  if (kind == "block") return node_object(unwrap(schedule.get(BlockRV{index})));
  return node_object(ir::int64(unwrap(schedule.get(ExprRV{index}))));
}

}  // namespace

void bind_schedule(nb::module_& m) {
  nb::class_<Schedule>(m, "ScheduleState", "A module under transformation; lathe.tir.Schedule is what users see.")
      .def_static(
          "create",
          [](const ir::IRModule& module, bool enable_check, const std::shared_ptr<tir::Context>& context) {
            // Whoever puts nodes together by hand may have left out what every primitive counts on.
            if (const support::Diagnostics found = driver::verify_module(module, {}); !found.empty()) raise(found);
            return unwrap(Schedule::create(module, {.enable_check = enable_check, .context = context}));
          },
          nb::arg("module"), nb::arg("enable_check"), nb::arg("context"))
      .def("copy", [](const Schedule& schedule) { return Schedule(schedule); })
      .def_prop_ro("mod", [](const Schedule& schedule) { return schedule.mod(); })
      .def_prop_ro("func_working_on", &Schedule::func_working_on)
      .def("run", run_instruction, nb::arg("kind"), nb::arg("inputs"), nb::arg("attributes"), nb::arg("excerpts"))
      .def("get", statement_of, nb::arg("kind"), nb::arg("index"))
      .def(
          "remove", [](Schedule& schedule, nb::handle handle) { unwrap(schedule.remove(argument_of(handle))); },
          nb::arg("handle"))
      .def(
          "compute_locations",
          [](const Schedule& schedule, uint32_t block) { return unwrap(schedule.compute_locations(BlockRV{block})); },
          nb::arg("block"))
      .def("instructions", [](const Schedule& schedule) { return trace_rows(schedule.trace()); });
  m.def("instruction_kinds", [] {
    nb::list names;
    for (const schedule::InstructionKind& kind : schedule::instruction_kinds()) names.append(std::string(kind.name));
    return names;
  });
  m.def(
      "index_map_image",
      [](const std::string& text, nb::handle extents, nb::handle outputs) {
        const schedule::IndexMap map = unwrap(schedule::parse_index_map(text));
        const std::vector<ir::Expr> given = exprs_of(extents);
        if (given.size() != map.from.size()) throw nb::value_error("a map takes as many extents as indices");
        const schedule::Image image = unwrap(schedule::image_of(map, given, exprs_of(outputs)));
        nb::list shape, preimages;
        for (const ir::Expr& extent : image.extents) shape.append(node_object(extent));
        for (const ir::Expr& preimage : image.preimages) preimages.append(node_object(preimage));
        return nb::make_tuple(shape, image.whole, preimages);
      },
      nb::arg("text"), nb::arg("extents"), nb::arg("outputs"), "What an index map makes of a box, and its way back.");
  m.def(
      "read_trace", [](const std::string& text) { return trace_rows(unwrap(schedule::parse_trace(text))); },
      nb::arg("text"), "The instructions of a printed trace.");
  m.def(
      "checked_trace",
      [](nb::handle rows) {
        const schedule::Trace trace = trace_of(rows);
        unwrap(trace.check());
        return trace_rows(trace);
      },
      nb::arg("instructions"), "The instructions as a schedule has them; raises where they are no trace.");
  m.def(
      "trace_text", [](nb::handle rows) { return trace_of(rows).as_python(); }, nb::arg("instructions"),
      "A statement a line.");
  m.def(
      "replay_trace", [](Schedule& schedule, nb::handle rows) { unwrap(trace_of(rows).apply(schedule)); },
      nb::arg("schedule"), nb::arg("instructions"), "Does what a trace says, on another schedule.");
}

}  // namespace lathe::python
