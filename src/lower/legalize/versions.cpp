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
  Version version{*function->get<std::string>(), {}, {}};
  for (const ir::Value& each : *sizes->get<List>()) {
    const List* pair = each.get<List>();
    if (!pair || pair->size() != 2) return std::nullopt;
    version.sizes.emplace_back(number((*pair)[0]), number((*pair)[1]));
  }
  for (const ir::Value& each : *scalars->get<List>()) version.scalars.push_back(number(each));
  return version;
}

}  // namespace

ir::Value to_value(const std::vector<Version>& versions) {
  List all;
  for (const Version& version : versions) {
    List sizes;
    for (const auto& [scalar, size] : version.sizes) sizes.emplace_back(List{scalar, size});
    all.emplace_back(Map{{"function", version.function},
                         {"sizes", std::move(sizes)},
                         {"scalars", List(version.scalars.begin(), version.scalars.end())}});
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

}  // namespace lathe::lower
