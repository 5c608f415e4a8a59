"""Names of the compiler's own intrinsics for x86; tensor_intrin.offered says which of them a target has."""

# C[16] += B[16, 4] @ A[4], unsigned by signed bytes: AVX-512 VNNI.
VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
# C[16] += B[16, 2] @ A[2] of bfloat16: AVX-512 BF16.
BF16_DOT_16x2_INTRIN = "dot_16x2_bf16"
# C[32, 32] = A[32, k] @ B[k / group, 32, group] over a whole reduced axis in steps of 64 bytes: AMX. Those with _UPDATE
# add to what C holds.
AMX_DOT_32x32_U8S8S32_INTRIN = "amx_dot_32x32_u8s8s32"
AMX_DOT_32x32_U8S8S32_UPDATE_INTRIN = "amx_dot_32x32_u8s8s32_update"
AMX_DOT_32x32_S8S8S32_INTRIN = "amx_dot_32x32_s8s8s32"
AMX_DOT_32x32_S8S8S32_UPDATE_INTRIN = "amx_dot_32x32_s8s8s32_update"
AMX_DOT_32x32_BF16BF16F32_INTRIN = "amx_dot_32x32_bf16bf16f32"
AMX_DOT_32x32_BF16BF16F32_UPDATE_INTRIN = "amx_dot_32x32_bf16bf16f32_update"
