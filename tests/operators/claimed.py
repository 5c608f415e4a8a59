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
    BitShift IsInf IsNaN Shrink Swish EyeLike BlackmanWindow HammingWindow HannWindow Range OneHot Size GatherND
    ScatterND Scatter ReverseSequence CumProd CenterCropPad LpPool GlobalLpPool ConvTranspose Einsum
    InstanceNormalization GroupNormalization RMSNormalization MeanVarianceNormalization LpNormalization LRN
    NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss Resize Upsample Attention FlexAttention RotaryEmbedding
    ArrayFeatureExtractor Binarizer Imputer Normalizer Scaler LabelEncoder TreeEnsemble TfIdfVectorizer Momentum
    Adagrad Adam StringConcat RegexFullMatch StringSplit StringNormalizer CategoryMapper RandomNormal
    RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial SequenceAt SequenceConstruct
    SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence ConcatFromSequence Optional
    OptionalGetElement OptionalHasElement SequenceMap If Loop Scan ImageDecoder
""".split()

# Operators that are imported and have no samples, each with the reason.
WITHOUT_SAMPLES = {
    "Gradient": "it is one of the graph around its node: tests/operators/gradient_cases.py has a graph",
}

# Element types of those operators; strings, sequences and complex numbers are not.
CLAIMED_DTYPES = {
    "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64",
    "FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
    "FLOAT8E8M0", "FLOAT4E2M1", "INT4", "UINT4", "INT2", "UINT2",
}  # fmt: skip
