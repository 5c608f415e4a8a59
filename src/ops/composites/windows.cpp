#include "ops/composites/windows.h"

namespace lathe::ops::composites {

std::string spatial_letters(size_t spatial) { return std::string("DHW").substr(3 - spatial); }

std::string shape_text(const Value& x) { return relax::text_of(build::shape_of(x)); }

const Value& numeric_tensor(const Expansion& e, size_t i, std::string_view name, size_t rank) {
  const Value& x = e.tensor(i);
  const DType dtype = build::dtype_of(x);
  if (!relax::contains(DTypeSet::numeric, dtype))
    e.refuse(codes::dtype_not_supported, std::string(name) + " holds numbers, not " + dtype.str());
  if (build::shape_of(x).size() != rank)
    e.refuse(codes::wrong_rank,
             std::string(name) + " has " + std::to_string(rank) + " dimensions, not those of " + shape_text(x));
  return x;
}

void check_layout(const Expansion& e, std::string_view name, const std::string& given, const std::string& letters) {
  if (!std::is_permutation(given.begin(), given.end(), letters.begin(), letters.end()))
    e.refuse(codes::wrong_attribute, std::string(name) + " is the letters of '" + letters + "' in some order, not '" +
                                         given.substr(0, 40) + "'");
}

Axes axes_between(const std::string& from, const std::string& to) {
  Axes axes;
  for (const char letter : to) axes.push_back(static_cast<int64_t>(from.find(letter)));
  return axes;
}

namespace {

void check_range(const Expansion& e, std::string_view name, int64_t value, int64_t least) {
  if (value < least || value > std::numeric_limits<int32_t>::max())
    e.refuse(codes::wrong_attribute, std::string(name) + " is " + std::to_string(value) + ", but takes numbers from " +
                                         std::to_string(least) + " to 2147483647");
}

}  // namespace

std::vector<int64_t> one_each(const Expansion& e, std::string_view name, const std::vector<int64_t>& given,
                              size_t dimensions, int64_t least) {
  for (const int64_t each : given) check_range(e, name, each, least);
  if (given.size() == 1) return std::vector<int64_t>(dimensions, given[0]);
  if (given.size() != dimensions)
    e.refuse(codes::wrong_attribute, std::string(name) + " takes one number or " + std::to_string(dimensions) +
                                         ", not " + std::to_string(given.size()));
  return given;
}

std::vector<int64_t> begins_and_ends(const Expansion& e, const std::vector<int64_t>& given, size_t dimensions) {
  for (const int64_t each : given) check_range(e, "padding", each, 0);
  if (given.size() == 2 * dimensions) return given;
  if (given.size() != 1 && given.size() != dimensions)
    e.refuse(codes::wrong_attribute, "padding takes 1, " + std::to_string(dimensions) + " or " +
                                         std::to_string(2 * dimensions) + " numbers, not " +
                                         std::to_string(given.size()));
  std::vector<int64_t> pads = one_each(e, "padding", given, dimensions, 0);
  for (size_t d = 0; d < dimensions; ++d) pads.push_back(pads[d]);
  return pads;
}

Value laid_out(const Expansion& e, Value y, const std::string& from, const std::optional<std::string>& out,
               const std::string& otherwise) {
  return e.permute(std::move(y), axes_between(from, out && !out->empty() ? *out : otherwise));
}

}  // namespace lathe::ops::composites
