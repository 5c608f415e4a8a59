"""Names of the compiler's own intrinsics for AArch64; tensor_intrin.offered says which of them a target has."""

# C[4] += B[4, 4] @ A[4] of bytes: the dot product instructions.
ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
