@I.ir_module
class M:
    @T.prim_func
    def double(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("Y"):
                v = T.axis.spatial(4, i)
                Y[v] = X[v] * T.float32(2)

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", 4), "float32")) -> R.Tuple(R.Tensor, R.Object):
        R.func_attr({"num_input": 1})
        n = T.int64()
        with R.dataflow():
            a = R.call_tir(M.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b: R.Tensor((n, 4), "float32") = R.add(R.nn.relu(x), R.const([1.0, 2.0, 3.0, 4.0], "float32"))
            d = R.reshape(R.concat((b, b), axis=1), R.shape([n * 2, 4]))
            e = R.permute_dims(R.matmul(d, R.zeros((4, 4), "float32")), axes=[1, 0])
            R.output(b, e)
        if c:
            r = R.add(b, b)
        else:
            s = R.sum(b, axis=[0], keepdims=True)
            r = s
        k = R.match_cast(e, R.Tensor((4, "m"), "float32"))
        return (r, k)
