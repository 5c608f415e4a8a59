#include "ops/operators.h"

#include "ops/composites/expansion.h"
#include "relax/assert_op.h"
#include "relax/call_tir.h"
#include "relax/collection.h"
#include "relax/control.h"
#include "relax/strings.h"
#include "relax/tensor_to_shape.h"

namespace lathe::ops {

const relax::OperatorTable& default_operators() {
  static const relax::OperatorTable table = [] {
    relax::OperatorTable rows;
    rows.add(relax::call_tir_operator);
    rows.add(relax::call_tir_inplace_operator);
    rows.add(relax::alloc_tensor_operator);
    rows.add(relax::tensor_to_shape_operator);
    rows.add(relax::assert_operator);
    rows.add(relax::branch_operator);
    rows.add(relax::loop_operator);
    for (const relax::Operator* row :
         {&relax::make_sequence_operator, &relax::sequence_insert_operator, &relax::sequence_erase_operator,
          &relax::sequence_at_operator, &relax::sequence_length_operator, &relax::join_sequence_operator,
          &relax::split_sequence_operator, &relax::make_optional_operator, &relax::optional_has_operator,
          &relax::optional_get_operator, &relax::strings_operator, &relax::as_strings_operator})
      rows.add(*row);
#define LATHE_OP(SYMBOL) rows.add(SYMBOL);
#include "ops/ops.def"
#undef LATHE_OP
#define LATHE_COMPOSITE(SYMBOL) rows.add(composites::SYMBOL);
#include "ops/composites/composites.def"
#undef LATHE_COMPOSITE
    return rows;
  }();
  return table;
}

}  // namespace lathe::ops
