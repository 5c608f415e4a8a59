#include "schedule/testing/walk.h"

#include "ir/function.h"
#include "schedule/analysis/tree.h"
#include "schedule/testing/attempts.h"
#include "schedule/testing/random_program.h"
#include "schedule/testing/truth.h"
#include "script/parse.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"
#include "tir/verify.h"

namespace lathe::schedule::testing {

namespace {

using support::Diagnostics;

class Walk {
 public:
  Walk(uint64_t seed, Tallies& tallies, const WalkOptions& options)
      : random_(seed),
        tallies_(tallies),
        options_(options),
        start_(program()),
        schedule_(Schedule::create(start_.function, "main", {.context = row_intrins()}).value_or_throw()) {}

  std::string run() {
    for (int i = 0; i < options_.steps; ++i) {
      const std::string problem = step();
      if (!problem.empty()) return problem + "\n" + schedule_.trace().as_python();
    }
    if (const std::string problem = hide(); !problem.empty()) return problem;
    return replay();
  }

 private:
  // Last, because what is proved after it is on the caller's word: the program itself is the same.
  std::string hide() {
    auto c = draw().choice();
    if (!c) return {};
    Tally& tally = tallies_["unsafe_hide_buffer_access"];
    ++tally.tried;
    const bool hidden = c->schedule.unsafe_hide_buffer_access(c->block, pick(2) ? "read" : "write", {0}).ok();
    ++(hidden ? tally.accepted : tally.cannot_be);
    if (!hidden) return {};
    schedule_ = std::move(c->schedule);
    const std::string found = difference(schedule_.mod().find_as<PrimFunc>("main"), reordered_);
    return found.empty() || found.rfind("invalid", 0) == 0 ? "" : "unsafe_hide_buffer_access: " + found;
  }

  // Every second time a program that the primitive accepted least often is for.
  RandomNests program() {
    struct Wish {
      std::string_view primitive, nest, block;
    };
    static constexpr Wish wishes[] = {{"cache_inplace", "in_place", ""},
                                      {"rolling_buffer", "windows", ""},
                                      {"decompose_padding", "", "padding"},
                                      {"split_padding", "", "padding"},
                                      {"rfactor", "product", "reduction"},
                                      {"decompose_reduction", "product", ""},
                                      {"fuse_reduction_epilogue", "epilogue", ""},
                                      {"pad_einsum", "product", ""},
                                      {"reverse_compute_inline", "chain", ""},
                                      {"compute_inline", "windows", ""},
                                      {"compute_at", "windows", "window"},
                                      {"reverse_compute_at", "product", ""},
                                      {"merge", "chain", ""},
                                      {"join", "chain", ""},
                                      {"prefetch", "product", ""},
                                      {"reindex_cache_read", "windows", ""},
                                      {"reindex_cache_write", "chain", ""},
                                      {"transform_layout", "chain", ""},
                                      {"tensorize", "", "window"},
                                      {"cache_index", "product", "window"},
                                      {"set_axis_separator", "chain", ""},
                                      {"sample_compute_location", "windows", ""}};
    const std::string_view least = least_accepted().name;
    const auto wish =
        std::find_if(std::begin(wishes), std::end(wishes), [&](const Wish& w) { return w.primitive == least; });
    const bool wished = pick(2) == 0 && wish != std::end(wishes);
    if (wished ? !wish->nest.empty() && (wish->block.empty() || pick(2)) : pick(2) == 0)
      return random_nests(random_, wished ? wish->nest : std::string_view());
    RandomProgramOptions options{.reads_everything = true, .element = DType::int_(32), .wished = {}};
    if (wished) options.wished = wish->block;
    if (pick(5) == 0) options.element = DType::float32();
    return {random_program(random_, options), {{}}, options.element};
  }

  size_t pick(size_t n) { return testing::pick(random_, n); }
  Draw draw() { return {random_, schedule_, start_.element}; }

  // Every second time the primitive that was accepted least often so far.
  const Primitive& next() { return pick(2) ? primitives()[pick(primitives().size())] : least_accepted(); }
  const Primitive& least_accepted() {
    const auto accepted = [&](const Primitive& p) { return tallies_[p.name].accepted; };
    return *std::ranges::min_element(primitives(), {}, accepted);
  }

  // A sum of floats may come out otherwise once one of these has been there.
  static bool may_reorder(const std::string& name) {
    static constexpr std::string_view reordering[] = {"reorder",
                                                      "compute_at",
                                                      "reverse_compute_at",
                                                      "sample_compute_location",
                                                      "rfactor",
                                                      "pad_einsum",
                                                      "reindex",
                                                      "transform_block_layout",
                                                      "unsafe_set_dtype",
                                                      "merge",
                                                      "fuse_reduction_epilogue"};
    return std::find(std::begin(reordering), std::end(reordering), name) != std::end(reordering);
  }

  double tolerance() const {
    if (!start_.element.is_floating()) return 0;
    return start_.element.bits == 16 ? 0.5 : 1e-4;
  }

  std::string difference(const Function& after, bool reordered) {
    for (const Symbols& symbols : start_.symbols) {
      const std::string found = tir::testing::difference(start_.function, after, random_(), symbols,
                                                         row_intrins().get(), reordered ? tolerance() : 0);
      if (!found.empty()) return found;
    }
    return {};
  }

  std::string step() {
    auto c = draw().choice();
    if (!c) return {};
    const Primitive& primitive = next();
    const std::string name = primitive.name;
    Draw from = draw();
    const Attempt a = primitive.attempt(from, *c);
    Schedule changed = c->schedule;
    const Diagnostics refused = a.run(changed);
    Tally& tally = tallies_[name];
    ++tally.tried;
    // Of a program in which nothing runs, nothing is learned.
    const Id block = c->schedule.get(c->block).value_or_throw()->id;
    const bool trivial = std::all_of(start_.symbols.begin(), start_.symbols.end(), [&](const Symbols& symbols) {
      return instances_run(c->schedule.function(), block, symbols) == 0;
    });
    if (!refused.empty()) {
      if (refused[0].message.empty()) return name + " refuses without a reason";
      if (options_.judges && !trivial) judge(name, a, *c, refused);
      tally.trivial += trivial;
      return {};
    }
    ++(trivial ? tally.trivial : tally.accepted);
    const ir::IRModule before = schedule_.mod();
    schedule_ = std::move(changed);
    reordered_ = reordered_ || may_reorder(name);
    const Function after = schedule_.mod().find_as<PrimFunc>("main");
    std::string wrong = ids(schedule_.function());
    if (wrong.empty()) wrong = malformed(after);
    if (!wrong.empty()) return name + ": " + wrong + "\n" + text(before) + text(schedule_.mod());
    const std::string found = difference(after, reordered_);
    // A program that was never right (an empty reduction that is read) proves nothing.
    if (found.rfind("invalid", 0) == 0) return {};
    if (!found.empty()) return name + ": " + found + "\n" + text(before) + text(schedule_.mod());
    if (a.concurrent && !race_free(a, *c)) return name + ": iterations depend on one another\n" + text(before);
    return {};
  }

  bool race_free(const Attempt& a, const Choice& c) const {
    for (const Symbols& symbols : start_.symbols)
      if (!iterations_are_independent(c.schedule.function(), c.schedule.get(*a.concurrent).value_or_throw()->id,
                                      symbols)
               .value_or(true))
        return false;
    return true;
  }

  void judge(const std::string& name, const Attempt& a, const Choice& c, const Diagnostics& refused) {
    Tally& tally = tallies_[name];
    Schedule forced = c.schedule;
    forced.set_options({.enable_check = false, .context = row_intrins()});
    if (!a.run(forced).empty()) {
      ++tally.cannot_be;
      return;
    }
    const std::string why = support::render(refused);
    bool same = true;
    const bool reordered = reordered_ || may_reorder(name);
    for (int round = 0; same && round < 3; ++round)
      same = difference(forced.mod().find_as<PrimFunc>("main"), reordered).empty();
    if (same && a.concurrent) same = race_free(a, c);
    // Instances that run before their values are final, and again, may come out right; they are not what is asked for.
    if (same && a.moved) {
      const Id block = c.schedule.get(*a.moved).value_or_throw()->id;
      for (const Symbols& symbols : start_.symbols)
        same = same &&
               instances_run(c.schedule.function(), block, symbols) == instances_run(forced.function(), block, symbols);
    }
    if (!same) {
      ++tally.illegal;
    } else if (why.find("budget") != std::string::npos || why.find("touched depends on") != std::string::npos) {
      // What values decide, or what is not affine, isl leaves open.
      ++tally.undecided;
    } else {
      ++tally.legal;
      Tally::Refusals& known = tally.legal_reasons[without_names(refused[0].message)];
      if (known.count++ == 0) known.example = why + text(c.schedule.mod()) + text(forced.mod());
    }
  }

  static std::string without_names(const std::string& message) {
    std::string result;
    bool quoted = false;
    for (const char letter : message) {
      if (letter == '\'') {
        if (!quoted) result += "_";
        quoted = !quoted;
      } else if (!quoted) {
        result += letter;
      }
    }
    return result;
  }

  // The printed trace makes the same program of the original.
  std::string replay() const {
    const std::string printed = schedule_.trace().as_python();
    const auto trace = parse_trace(printed);
    if (!trace) return "trace: " + support::render(trace.diagnostics()) + printed;
    Schedule again = Schedule::create(start_.function, "main", {.context = row_intrins()}).value_or_throw();
    if (const auto applied = trace->apply(again); !applied) return support::render(applied.diagnostics()) + printed;
    const auto first = ir::first_difference(again.mod(), schedule_.mod());
    return first ? "replayed: " + *first + "\n" + printed : "";
  }

  static std::string text(const ir::IRModule& module) {
    return tir::function_text(module.find_as<PrimFunc>("main")) + "\n";
  }

  // What the verifier says, or where the text of it is another program.
  static std::string malformed(const Function& function) {
    if (const Diagnostics problems = tir::verify(function); !problems.empty()) return support::render(problems);
    static const script::Dialect* const dialects[] = {&tir::script_dialect()};
    const std::string printed = tir::function_text(function);
    const auto parsed = script::parse_function({"<walk>", printed}, dialects);
    if (!parsed) return "its text: " + support::render(parsed.diagnostics());
    const auto other = ir::first_difference(NodeRef(*parsed), NodeRef(function));
    return other ? "its text reads as another program: " + *other : "";
  }

  // Every loop and block has its own number.
  static std::string ids(const PrimFunc& function) {
    std::set<Id> seen;
    std::string problem;
    each_statement(function.body, [&](const Stmt& s) {
      const Id id = s.as<For>() ? s.as<For>()->id : s.as<Block>() ? s.as<Block>()->id : ~Id{0};
      if (id == 0) problem = "a loop or block has no number";
      if (id != ~Id{0} && !seen.insert(id).second) problem = fmt::format("number {} is given twice", id);
    });
    return problem;
  }

  std::mt19937 random_;
  Tallies& tallies_;
  WalkOptions options_;
  RandomNests start_;
  Schedule schedule_;
  bool reordered_ = false;
};

}  // namespace

std::string walk(uint64_t seed, Tallies& tallies, const WalkOptions& options) {
  return Walk(seed, tallies, options).run();
}

std::string table(const Tallies& tallies, bool with_examples) {
  std::string rows = fmt::format("{:24} {:>6} {:>8} {:>7} {:>9} {:>7} {:>5} {:>9} {:>7}\n", "primitive", "tried",
                                 "accepted", "trivial", "cannot be", "illegal", "legal", "undecided", "refused");
  Tally all;
  const auto row = [](const std::string& name, const Tally& t) {
    return fmt::format("{:24} {:6} {:8} {:7} {:9} {:7} {:5} {:9} {:6.1f}%\n", name, t.tried, t.accepted, t.trivial,
                       t.cannot_be, t.illegal, t.legal, t.undecided, 100 * t.share_refused());
  };
  for (const auto& [name, t] : tallies) {
    rows += row(name, t);
    for (const auto& [reason, known] : t.legal_reasons)
      rows += fmt::format("    {:4} {}\n{}", known.count, reason, with_examples ? known.example : "");
    all.tried += t.tried;
    all.accepted += t.accepted;
    all.trivial += t.trivial;
    all.cannot_be += t.cannot_be;
    all.illegal += t.illegal;
    all.legal += t.legal;
    all.undecided += t.undecided;
  }
  return rows + row("all", all);
}

}  // namespace lathe::schedule::testing
