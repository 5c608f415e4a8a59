#include "lower/legalize/versions.h"

namespace lathe::lower {
namespace {

using List = ir::Value::List;
using Map = ir::Value::Map;

std::optional<Version> read(const ir::Value& value) {
  const Map* entries = value.get<Map>();
  const auto part = [&](const char* name) {
    const auto it = entries->find(name);
    return it == entries->end() ? nullptr : &it->second;
  };
  const auto number = [](const ir::Value& each) { return each.get<int64_t>() ? *each.get<int64_t>() : -1; };
  const ir::Value* function = entries ? part("function") : nullptr;
  const ir::Value* sizes = entries ? part("sizes") : nullptr;
  const ir::Value* scalars = entries ? part("scalars") : nullptr;
  if (!function || !function->get<std::string>() || !sizes || !sizes->get<List>() || !scalars || !scalars->get<List>())
    return std::nullopt;
  const ir::Value* equal = part("equal");
  Version version{*function->get<std::string>(), {}, {}, {}};
  for (const auto& [from, to] : {std::pair(sizes, &version.sizes), std::pair(equal, &version.equal)}) {
    if (!from) continue;
    if (!from->get<List>()) return std::nullopt;
    for (const ir::Value& each : *from->get<List>()) {
      const List* pair = each.get<List>();
      if (!pair || pair->size() != 2) return std::nullopt;
      to->emplace_back(number((*pair)[0]), number((*pair)[1]));
    }
  }
  for (const ir::Value& each : *scalars->get<List>()) version.scalars.push_back(number(each));
  return version;
}

List pairs(const std::vector<std::pair<int64_t, int64_t>>& numbers) {
  List list;
  for (const auto& [a, b] : numbers) list.emplace_back(List{a, b});
  return list;
}

}  // namespace

ir::Value to_value(const std::vector<Version>& versions) {
  List all;
  for (const Version& version : versions) {
    Map entries{{"function", version.function},
                {"sizes", pairs(version.sizes)},
                {"scalars", List(version.scalars.begin(), version.scalars.end())}};
    if (!version.equal.empty()) entries.emplace("equal", pairs(version.equal));
    all.emplace_back(std::move(entries));
  }
  return all;
}

std::vector<Version> versions_of(const tir::PrimFunc& function) {
  std::vector<Version> versions;
  const List* all = function.attrs.get<List>("versions");
  for (size_t i = 0; all && i < all->size(); ++i)
    if (auto version = read((*all)[i])) versions.push_back(*std::move(version));
  return versions;
}

std::set<std::string> versions_in(const ir::IRModule& module) {
  std::set<std::string> names;
  for (const auto& [name, function] : module)
    if (const auto* kernel = function.as<tir::PrimFunc>())
      for (const Version& version : versions_of(*kernel)) names.insert(version.function);
  return names;
}

}  // namespace lathe::lower
