#include "driver/report/explain/explanation.h"

namespace lathe::driver {
namespace {

struct Line {
  std::string_view text;  // without indentation
  bool is_instruction = false, is_spill = false;
};

// "jne .LBB0_5" and "b.ne .LBB0_5" go to the label.
std::string_view target_of(std::string_view text) {
  const bool jumps = text[0] == 'j' || text.starts_with("b.") || text.starts_with("b\t") || text.starts_with("cb");
  const size_t at = text.rfind(".LBB");
  return jumps && at != std::string_view::npos ? text.substr(at, text.find_first_of(" \t#,", at) - at)
                                               : std::string_view();
}

std::string_view mnemonic(std::string_view text) { return text.substr(0, text.find_first_of(" \t")); }

bool is_arithmetic(std::string_view op) {
  for (const std::string_view start : {"vfm", "vfnm", "vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "vpdp", "vdp",
                                       "tdp", "vpadd", "vpmul", "fml", "fadd", "fmul", "sdot", "udot", "bfmmla"})
    if (op.starts_with(start)) return true;
  return false;
}

// The vector registers of x86-64, and those of AArch64 as "v7.4s" or "q7", named in the text.
void add_registers(std::string_view text, std::set<std::string>& found) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '#') return;
    const bool x86 = text[at] == '%' && at + 4 < text.size() && text.substr(at + 2, 2) == "mm";
    const bool arm = (text[at] == 'v' || text[at] == 'q') && (at == 0 || std::strchr(" \t,{", text[at - 1]));
    if (!x86 && !arm) continue;
    size_t end = x86 ? at + 4 : at + 1;
    const size_t digits = end;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > digits) found.insert(std::string(text.substr(digits, end - digits)));
  }
}

// Where the last operand begins, in AT&T syntax the one that is written; commas inside of addresses part none.
size_t last_operand(std::string_view text) {
  size_t comma = std::string_view::npos;
  int depth = 0;
  for (size_t i = 0; i < text.size() && text[i] != '#'; ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] == ',' && depth == 0) comma = i;
  }
  return comma;
}

LoopCode code_of(const std::vector<Line>& lines, size_t begin, size_t end) {
  LoopCode code;
  std::set<std::string> registers;
  for (size_t i = begin; i <= end; ++i) {
    const Line& line = lines[i];
    if (!line.is_instruction) continue;
    const std::string_view text = line.text, op = mnemonic(text);
    ++code.instructions;
    code.spills += line.is_spill;
    code.arithmetic += is_arithmetic(op);
    add_registers(text, registers);
    const size_t memory = text.find('('), comma = last_operand(text);
    if (op.starts_with("ld") || op.starts_with("st")) {
      ++(op[0] == 'l' ? code.loads : code.stores);
    } else if (memory != std::string_view::npos && !op.starts_with("lea") && !op.starts_with("prefetch")) {
      const bool writes = comma != std::string_view::npos && text.find('(', comma) != std::string_view::npos &&
                          op.find("mov") != std::string_view::npos;
      ++(writes ? code.stores : code.loads);
    }
  }
  code.vector_registers = static_cast<int>(registers.size());
  return code;
}

}  // namespace

CodeShape shape_of_assembly(std::string_view text) {
  std::vector<Line> lines;
  std::map<std::string_view, size_t> labels;
  std::vector<std::pair<size_t, size_t>> loops;  // first and last line
  CodeShape shape;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    if (line[0] == '.' && colon != std::string_view::npos) labels[line.substr(0, colon)] = lines.size();
    const bool is_label = colon != std::string_view::npos && line.find_first_of(" \t") > colon;
    Line next{line, line[0] != '.' && line[0] != '#' && line[0] != '/' && !is_label, false};
    next.is_spill = next.is_instruction &&
                    (line.find("Spill") != std::string_view::npos || line.find("Reload") != std::string_view::npos);
    shape.instructions += next.is_instruction;
    shape.spills += next.is_spill;
    if (next.is_instruction)
      if (const auto label = labels.find(target_of(line)); label != labels.end())
        loops.emplace_back(label->second, lines.size());
    lines.push_back(next);
  }
  for (const auto& [begin, end] : loops) {
    const bool is_innermost = std::none_of(loops.begin(), loops.end(), [&, first = begin, last = end](const auto& o) {
      return (o.first > first && o.second <= last) || (o.first == first && o.second < last);
    });
    if (!is_innermost) continue;
    const LoopCode code = code_of(lines, begin, end);
    if (!shape.inner || code.arithmetic > shape.inner->arithmetic) shape.inner = code;
  }
  return shape;
}

}  // namespace lathe::driver
