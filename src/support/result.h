// Result<T>: a value, or the diagnostics that say why there is none. `TRY(expression)` unwraps or returns the error.
#pragma once

#include "support/diagnostic.h"

namespace lathe::support {

// What a function returns on failure; converts to any Result.
struct Failure {
  Diagnostics diagnostics;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Diagnostic diagnostic) : state_(Failure{{std::move(diagnostic)}}) {}
  Result(Diagnostics diagnostics) : state_(Failure{std::move(diagnostics)}) {}
  Result(Failure failure) : state_(std::move(failure)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return const_cast<Result*>(this)->value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &const_cast<Result*>(this)->value(); }

  const Diagnostics& diagnostics() const { return std::get<Failure>(state_).diagnostics; }
  Failure failure() && { return std::move(std::get<Failure>(state_)); }

  // The value, or the diagnostics as an exception: for edges and tests.
  T value_or_throw() && {
    if (!ok()) throw DiagnosticError(diagnostics());
    return std::move(std::get<T>(state_));
  }

 private:
  T& value() {
    if (!ok()) throw DiagnosticError(std::get<Failure>(state_).diagnostics);
    return std::get<T>(state_);
  }
  std::variant<T, Failure> state_;
};

// The result of a step that has no value.
using Status = Result<std::monostate>;
inline Status success() { return std::monostate{}; }

// Runs `step`, turning a DiagnosticError thrown by a builder into a failed Result.
template <class Step>
auto catch_diagnostics(Step&& step) -> decltype(step()) {
  try {
    return step();
  } catch (const DiagnosticError& error) {
    return Failure{error.diagnostics};
  }
}

}  // namespace lathe::support

// Unwraps a Result inside a function that returns a Result; on failure returns it.
#define TRY(expression)                                           \
  ({                                                              \
    auto&& try_result = (expression);                             \
    if (!try_result.ok()) return std::move(try_result).failure(); \
    *std::move(try_result);                                       \
  })
