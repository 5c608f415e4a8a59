// Matching over the kinds of a family. `match_all` takes one case a kind: forgetting one does not compile. `match`
// takes some cases and a fallback for the base type.
#pragma once

#include "ir/fields.h"

namespace lathe::ir {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

namespace detail {

template <class Visitor, class Base, class R, class... Kinds>
R dispatch(const Ref<Base>& handle, Visitor& visitor, KindList<Kinds...>) {
  static_assert((std::is_invocable_v<Visitor&, const Kinds&> && ...), "a kind of the family has no case");
  using Case = R (*)(const Base&, Visitor&);
  static constexpr Case cases[] = {
      [](const Base& node, Visitor& v) -> R { return v(static_cast<const Kinds&>(node)); }...};
  return cases[handle->node_class().kind](*handle, visitor);
}

template <class Visitor, class... Kinds>
auto first_result(KindList<Kinds...>)
    -> std::invoke_result_t<Visitor&, const std::tuple_element_t<0, std::tuple<Kinds...>>&>;

}  // namespace detail

// Calls the case for the node's kind. All cases return the type of the first kind's case.
template <class Base, class... Cases>
auto match_all(const Ref<Base>& handle, Cases&&... cases) {
  Overloaded visitor{std::forward<Cases>(cases)...};
  using Kinds = typename FamilyKinds<Base>::type;
  using R = decltype(detail::first_result<decltype(visitor)>(Kinds{}));
  return detail::dispatch<decltype(visitor), Base, R>(handle, visitor, Kinds{});
}

// As `match_all`, where one case takes the family's base type and serves every kind without a case of its own.
template <class Base, class... Cases>
auto match(const Ref<Base>& handle, Cases&&... cases) {
  return match_all(handle, std::forward<Cases>(cases)...);
}

}  // namespace lathe::ir
