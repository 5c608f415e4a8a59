"""The operators that Lathe claims: every node case of the onnx suite made of these only must pass."""

CLAIMED = """
    Add Sub Mul Div Pow Mod Neg Abs Sqrt Reciprocal Exp Log Sin Cos Tanh Erf Sigmoid Relu LeakyRelu PRelu Elu Selu
    Softplus HardSigmoid HardSwish Gelu Clip Floor Ceil Round Sign Min Max Mean Sum And Or Xor Not Equal Greater
    GreaterOrEqual Less LessOrEqual Where Cast MatMul Gemm Conv MaxPool AveragePool GlobalAveragePool GlobalMaxPool
    BatchNormalization LayerNormalization Softmax LogSoftmax ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin Reshape Flatten Transpose Concat Split
    Slice Gather Pad Expand Tile Squeeze Unsqueeze Shape Identity Dropout Constant ConstantOfShape
    Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh BitwiseAnd BitwiseOr BitwiseXor BitwiseNot Celu Mish Softsign
    ThresholdedRelu Hardmax GatherElements ScatterElements Trilu CumSum TopK DepthToSpace SpaceToDepth
    TensorScatter CastLike BitCast QuantizeLinear DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearMatMul
    ConvInteger QLinearConv
    RNN GRU LSTM NonZero Compress Unique NonMaxSuppression
    GridSample AffineGrid RoiAlign DeformConv Col2Im MaxUnpool DFT STFT MelWeightMatrix Det LinearAttention
    CausalConvWithState
""".split()

# Element types of those operators; strings, sequences and complex numbers are not.
CLAIMED_DTYPES = {
    "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64",
    "FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
    "FLOAT8E8M0", "FLOAT4E2M1", "INT4", "UINT4", "INT2", "UINT2",
}  # fmt: skip
