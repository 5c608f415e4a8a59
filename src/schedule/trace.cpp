#include "schedule/trace.h"

#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "schedule/instruction.h"

namespace lathe::schedule {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result + "\"";
}

std::string print(const Argument& argument) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return "None";
        else if constexpr (std::is_same_v<T, LoopRV>)
          return fmt::format("l{}", v.index);
        else if constexpr (std::is_same_v<T, BlockRV>)
          return fmt::format("b{}", v.index);
        else if constexpr (std::is_same_v<T, ExprRV>)
          return fmt::format("v{}", v.index);
        else if constexpr (std::is_same_v<T, bool>)
          return v ? "True" : "False";
        else if constexpr (std::is_same_v<T, int64_t>)
          return std::to_string(v);
        else if constexpr (std::is_same_v<T, double>) {
          const std::string text = fmt::format("{}", v);
          return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
        } else if constexpr (std::is_same_v<T, std::string>)
          return quoted(v);
        else if constexpr (std::is_same_v<T, IndexMap>)
          return v.text();
        else {
          std::string list = "[";
          for (size_t i = 0; i < v.size(); ++i) list += (i ? ", " : "") + print(v[i]);
          return list + "]";
        }
      },
      argument.data);
}

std::string print(const Instruction& instruction) {
  std::string line;
  for (size_t i = 0; i < instruction.outputs.size(); ++i) line += (i ? ", " : "") + print(instruction.outputs[i]);
  if (instruction.kind->returns_list && instruction.outputs.size() == 1) line += ",";
  if (!instruction.outputs.empty()) line += " = ";
  line += "sch." + std::string(instruction.kind->name) + "(";
  bool first = true;
  for (const Argument& argument : instruction.inputs) {
    line += (first ? "" : ", ") + print(argument);
    first = false;
  }
  for (const auto& [name, value] : instruction.attributes) {
    line += (first ? "" : ", ") + name + "=" + print(value);
    first = false;
  }
  return line + ")";
}

// A handle's number, with what kind it is, as a key.
std::optional<std::string> handle_name(const Argument& argument) {
  if (argument.get<LoopRV>() || argument.get<BlockRV>() || argument.get<ExprRV>()) return print(argument);
  return std::nullopt;
}

using Renaming = std::map<std::string, Argument>;

Result<Argument> renamed(const Argument& argument, const Renaming& names) {
  if (const auto* list = argument.get<Argument::List>()) {
    Argument::List result;
    for (const Argument& item : *list) result.push_back(TRY(renamed(item, names)));
    return Argument(std::move(result));
  }
  const auto name = handle_name(argument);
  if (!name) return argument;
  const auto it = names.find(*name);
  if (it == names.end()) return refuse(codes::trace, fmt::format("the trace uses '{}' before it is made", *name));
  return it->second;
}

}  // namespace

std::string Trace::as_python() const {
  std::string text;
  for (const Instruction& instruction : instructions_) text += print(instruction) + "\n";
  return text;
}

Status Trace::check() const {
  Renaming made;
  for (const Instruction& instruction : instructions_) {
    for (const Argument& input : instruction.inputs) TRY(renamed(input, made));
    for (const auto& [name, value] : instruction.attributes) TRY(renamed(value, made));
    for (const Argument& output : instruction.outputs) {
      const auto name = handle_name(output);
      if (!name)
        return refuse(codes::trace, fmt::format("an output of '{}' is {}, which is no loop, block or number of a trace",
                                                instruction.kind->name, print(output)));
      made[*name] = output;
    }
  }
  return support::success();
}

Status Trace::apply(Schedule& schedule) const {
  TRY(check());
  Renaming names;
  for (const Instruction& recorded : instructions_) {
    Instruction instruction{recorded.kind, {}, {}, {}};
    for (const Argument& input : recorded.inputs) instruction.inputs.push_back(TRY(renamed(input, names)));
    for (const auto& [name, value] : recorded.attributes)
      instruction.attributes.emplace_back(name, TRY(renamed(value, names)));
    const std::vector<Argument> outputs = TRY(instruction.kind->run(schedule, instruction));
    if (outputs.size() != recorded.outputs.size())
      return refuse(codes::trace, fmt::format("'{}' made {} handles where the trace has {}", print(recorded),
                                              outputs.size(), recorded.outputs.size()));
    for (size_t i = 0; i < outputs.size(); ++i) names[*handle_name(recorded.outputs[i])] = outputs[i];
  }
  return support::success();
}

}  // namespace lathe::schedule
