"""text"""
from tvm.script import tir as T
@T.prim_func(name="g")
def f(x: T.int8, y: T.uint64, z: T.bfloat16, w: T.float8_e4m3fn, v: "float32x4"):
    T.evaluate(T.int8(-128))
    T.evaluate(T.uint64(18446744073709551615) >> T.uint64(1))
    T.evaluate(T.bfloat16(1e-30) ** T.bfloat16(0x1F))
    T.evaluate(T.reinterpret("int32", T.float32("-inf")))
    T.evaluate(("\x41\u00e9\n", 1_000, 0b101, 0o17, True, None)[1])
    T.evaluate(x if x < 3 else T.if_then_else(x == 1, x, -x))
    T.evaluate(v + T.Cast("float32x4", v))
    T.ret(0)
