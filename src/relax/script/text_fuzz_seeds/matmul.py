@I.ir_module
class M:
    I.module_attrs({"a": 1, "b": [1.5, "x", None]})

    @T.prim_func
    def mm(A: T.Buffer((8, 6), "float32"), b: T.handle, n: T.int64):
        T.func_attr({"global_symbol": "mm"})
        B = T.match_buffer(b, (6, n), "float32", strides=(n, 1), offset_factor=1)
        C = T.alloc_buffer((8, n), "float16", scope="local")
        for i, j in T.grid(8, n):
            for k in T.serial(0, 6, annotations={"pragma": 1}):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.where(i * 8 + j < 60)
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = T.float16(0)
                    C[vi, vj] += T.Cast("float16", A[vi, vk] * B[vk, vj])
