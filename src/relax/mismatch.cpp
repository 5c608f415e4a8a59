#include "relax/mismatch.h"

#include "relax/infer.h"

namespace lathe::relax {

Message mismatch(const ir::Expr& actual, const ir::Expr& expected) {
  const auto* choice = expected.as<ir::Select>();
  const ir::Expr& other = choice ? choice->false_value : expected;
  // What is broadcast to may be such a choice itself.
  const auto* inner = other.as<ir::Select>();
  ir::Expr met = actual, wanted = inner ? inner->false_value : other;
  if (ir::as_int(met)) std::swap(met, wanted);
  Message message;
  message << "the shapes do not fit: " << text_of(met) << " is " << met << ", it must be " << (choice ? "1 or " : "")
          << text_of(wanted);
  if (!ir::as_int(wanted)) message << ", which is " << wanted;
  return message;
}

}  // namespace lathe::relax
