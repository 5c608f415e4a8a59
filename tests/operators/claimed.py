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
    TensorScatter
""".split()

# Element types of those operators; strings, sequences and the types narrower than a byte or of 8-bit floats are not.
CLAIMED_DTYPES = {
    "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64",
    "FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE",
}  # fmt: skip
