// What type rules share: shapes as text, axes, broadcasting, window sizes, dtype checks, with their diagnostics.
#pragma once

#include "relax/codes.h"
#include "relax/operator.h"
#include "te/topi/window.h"

namespace lathe::relax {

using Shape = std::vector<ir::Expr>;
using OptionalShape = std::optional<Shape>;

// The struct info of any expression whose operands have theirs.
Result<StructInfo> infer_struct_info(const Expr& e);

// ---- text for messages ----
std::string text_of(const ir::Expr& extent);        // "8", "n", "2 * n + 1"
std::string text_of(const Shape& shape);            // "[8, n]"
std::string text_of(const TensorStructInfo& info);  // "float32[8, n]"
support::Diagnostic wrong(support::Code code, std::string message);

// ---- extents ----
// Whether two extents are known to be equal; whether they are known to differ.
bool same_extent(const ir::Expr& a, const ir::Expr& b);
bool different_extents(const ir::Expr& a, const ir::Expr& b);
bool same_shape(const Shape& a, const Shape& b);
// False where `actual` is known to differ from `expected`; where only the run can tell, it is assumed to be equal.
bool may_be(const ir::Expr& actual, const ir::Expr& expected, Assumptions* assumptions);
// What is left of the elements of `own` for one extent beside those of `others`. Factors that both have are taken out:
// where such a one is 0 the extent could be any.
ir::Expr extent_left(const Shape& own, const Shape& others);
ir::Expr non_negative(ir::Expr extent);  // max(extent, 0), simplified
ir::Expr simplified(const ir::Expr& extent);
// The constant shape, or nothing where an extent is symbolic.
std::optional<std::vector<int64_t>> constant_shape(const Shape& shape);

// ---- arguments ----
// Argument i as a tensor; a diagnostic that names operator and input when it is missing or no tensor.
Result<const TensorStructInfo*> tensor_argument(const InferContext& c, size_t i);
// The values of a shape argument.
Result<Shape> shape_argument(const InferContext& c, size_t i);

// ---- dtypes ----
enum class DTypeSet : uint8_t { any, numeric, floating, signed_numeric, integer, boolean };
bool contains(DTypeSet set, DType dtype);
// A diagnostic unless argument i's dtype is of `set` (a void dtype is unknown, and accepted).
support::Status check_dtype(const InferContext& c, size_t i, DTypeSet set);
support::Status check_same_dtype(const InferContext& c, size_t i, size_t j);
// The dtype in which sums of `dtype` are accumulated: float32 for narrower floats, else itself.
DType accumulation_dtype(DType dtype);

// ---- shapes ----
// An axis in [0, rank) from one in [-rank, rank).
Result<int64_t> normalize_axis(const InferContext& c, int64_t axis, int64_t rank);
// Axes normalised, ascending, distinct; absent: all.
Result<std::vector<int64_t>> normalize_axes(const InferContext& c, const std::optional<std::vector<int64_t>>& axes,
                                            int64_t rank);
// The common shape of two under NumPy's broadcasting: "cannot broadcast [8, 128] with [8, 64]".
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b, Assumptions* assumptions = nullptr);
// Whether `from` broadcasts to `to` and leaves it as it is; false where it is known not to.
bool broadcasts_to(const Shape& from, const Shape& to, Assumptions* assumptions);
// The tensor info of all tensor arguments broadcast together, of `dtype`; of unknown shape where one is.
Result<StructInfo> broadcast_arguments(const InferContext& c, DType dtype);
// The shape without `axes`, or with 1 there.
Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keepdims);

// ---- common rules ----
Infer same_type_as_input(DTypeSet set = DTypeSet::any);

// ---- windows ----
using te::topi::Window;
// The window's count of positions over `extent`; with `ceil_mode` the last may reach beyond the padding, but starts
// inside input or leading padding (ONNX).
ir::Expr window_positions(const ir::Expr& extent, const Window& window, bool ceil_mode);
// Padding by rule: "NOTSET" (pads: begins, then ends; empty: zeros), "VALID", "SAME_UPPER", "SAME_LOWER".
struct WindowAttributesView {
  const std::vector<int64_t>& strides;    // empty: ones
  const std::vector<int64_t>& dilations;  // empty: ones
  const std::vector<int64_t>& padding;
  const std::string& auto_pad;
};
Result<std::vector<Window>> resolve_windows(const InferContext& c, const WindowAttributesView& view,
                                            const Shape& spatial, const Shape& kernel);

}  // namespace lathe::relax
