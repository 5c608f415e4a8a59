#include "relax/dim_sizes.h"

#include <charconv>

#include "ir/build.h"
#include "relax/codes.h"

namespace lathe::relax {
namespace {

constexpr auto lower = "tir_var_lower_bound", upper = "tir_var_upper_bound", likely = "tir_var_likely";

support::Diagnostic refuse(std::string message) {
  return {
      .code = codes::wrong_sizes,
      .message = std::move(message),
      .help =
          "a dimension's sizes are one (8), a range (1..64, 1..), or a range with those that are likely (1..64:8,16)"};
}

// What is wrong with sizes whose numbers are read; empty where nothing is.
std::string problem_of(const DimSizes& sizes) {
  if (sizes.least < 0) return fmt::format("{} is negative", sizes.least);
  if (sizes.most < sizes.least) return fmt::format("{} is less than {}", sizes.most, sizes.least);
  for (const int64_t size : sizes.likely)
    if (!sizes.allows(size)) return fmt::format("{} lies outside the range", size);
  return "";
}

Result<DimSizes> checked(const std::string& name, DimSizes sizes) {
  std::string problem = problem_of(sizes);
  if (problem.empty()) return sizes;
  return refuse(fmt::format("the sizes {} of the dimension '{}' cannot be: {}", to_string(sizes), name, problem));
}

// The number at the start of `text`, which moves past it.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

std::optional<DimSizes> read(std::string_view text) {
  const auto least = take_number(text);
  if (!least) return std::nullopt;
  DimSizes sizes(*least);
  if (!take(text, "..")) return text.empty() ? std::optional(sizes) : std::nullopt;
  sizes.most = DimSizes::unlimited;
  if (!text.empty() && text[0] != ':') {
    const auto most = take_number(text);
    if (!most) return std::nullopt;
    sizes.most = *most;
  }
  if (take(text, ":")) do {
      const auto size = take_number(text);
      if (!size) return std::nullopt;
      sizes.likely.push_back(*size);
    } while (take(text, ","));
  return text.empty() ? std::optional(sizes) : std::nullopt;
}

using Map = ir::Value::Map;

// Calls `read` with the entries of the function's attribute `name`.
support::Status each_entry(const FunctionNode& function, const char* name,
                           support::function_ref<bool(const std::string& symbol, const ir::Value&)> read) {
  const ir::Value* attribute = function.attrs.find(name);
  if (!attribute) return support::success();
  const Map* entries = attribute->get<Map>();
  if (!entries) return refuse(fmt::format("the attribute '{}' is no map from symbols", name));
  for (const auto& [symbol, value] : *entries)
    if (!read(symbol, value)) return refuse(fmt::format("the attribute '{}' says nothing legal of '{}'", name, symbol));
  return support::success();
}

bool read_number(const ir::Value& value, int64_t& into) {
  if (const auto* number = value.get<int64_t>()) into = *number;
  return value.get<int64_t>() != nullptr;
}

}  // namespace

Result<DimSizes> parse_dim_sizes(const std::string& name, std::string_view text) {
  const auto sizes = read(text);
  if (!sizes) return refuse(fmt::format("'{}' says no sizes of the dimension '{}'", text, name));
  return checked(name, *sizes);
}

std::string to_string(const DimSizes& sizes) {
  if (const auto fixed = sizes.fixed(); fixed && sizes.likely.empty()) return std::to_string(*fixed);
  std::string text = fmt::format("{}..", sizes.least);
  if (sizes.most != DimSizes::unlimited) text += std::to_string(sizes.most);
  for (size_t i = 0; i < sizes.likely.size(); ++i) text += fmt::format("{}{}", i ? ',' : ':', sizes.likely[i]);
  return text;
}

void tell_sizes(ir::Attributes& attributes, const std::string& symbol, const DimSizes& sizes) {
  const auto add = [&](const char* name, ir::Value value) {
    const Map* told = attributes.get<Map>(name);
    Map entries = told ? *told : Map();
    entries[symbol] = std::move(value);
    attributes.set(name, std::move(entries));
  };
  if (sizes.least > 0) add(lower, sizes.least);
  if (sizes.most != DimSizes::unlimited) add(upper, sizes.most);
  if (!sizes.likely.empty()) add(likely, ir::Value::List(sizes.likely.begin(), sizes.likely.end()));
}

Result<DimSizesByName> told_sizes(const FunctionNode& function) {
  DimSizesByName told;
  TRY(each_entry(function, lower, [&](const std::string& symbol, const ir::Value& value) {
    return read_number(value, told[symbol].least);
  }));
  TRY(each_entry(function, upper, [&](const std::string& symbol, const ir::Value& value) {
    return read_number(value, told[symbol].most);
  }));
  TRY(each_entry(function, likely, [&](const std::string& symbol, const ir::Value& value) {
    const auto* sizes = value.get<ir::Value::List>();
    return sizes && std::all_of(sizes->begin(), sizes->end(), [&](const ir::Value& each) {
             return read_number(each, told[symbol].likely.emplace_back());
           });
  }));
  for (const auto& [symbol, sizes] : told) TRY(checked(symbol, sizes));
  return told;
}

Result<std::vector<Assert>> size_checks(const FunctionNode& function) {
  const DimSizesByName told = TRY(told_sizes(function));
  std::vector<Assert> checks;
  std::set<const ir::Node*> met;
  for (const Var& param : function.params) {
    const auto* info = as_tensor(param);
    const auto* given = param->struct_info.as<ShapeStructInfo>();
    const auto& shape = given ? given->values : info ? info->shape : std::nullopt;
    for (size_t d = 0; shape && d < shape->size(); ++d) {
      const auto* symbol = (*shape)[d].as<ir::VarNode>();
      const auto sizes = symbol ? told.find(symbol->name) : told.end();
      if (sizes == told.end() || !met.insert(symbol).second) continue;
      const ir::Expr size(symbol);
      const int64_t least = sizes->second.least, most = sizes->second.most;
      Message message;
      message << (given ? fmt::format("'{}' is ", symbol->name)
                        : fmt::format("dimension {} ('{}') of the input '{}' is ", d, symbol->name, param->name))
              << size;
      message << (most == DimSizes::unlimited ? fmt::format("; it must be at least {}", least)
                                              : fmt::format("; it must be from {} to {}", least, most));
      ir::Expr holds = ir::boolean(true);
      if (least > 0) holds = ir::logical_and(holds, ir::le(ir::int64(least), size));
      if (most != DimSizes::unlimited) holds = ir::logical_and(holds, ir::le(size, ir::int64(most)));
      if (!ir::is_int(holds, 1)) checks.push_back({holds, message.numbers(), message.format()});
    }
  }
  return checks;
}

}  // namespace lathe::relax
