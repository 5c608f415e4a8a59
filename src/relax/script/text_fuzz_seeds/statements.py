# lathe script 1
@T.prim_func
def f(A: T.Buffer((16,), "float32"), p: T.handle("float32"), n: T.int32):
    c = T.allocate_const([1.5, -0.0], "float32", [2])
    q = T.allocate([8], "float32", "local")
    V = T.decl_buffer((8,), "float32", data=q)
    with T.LetStmt(n + 1) as m:
        T.attr("node", "pragma", m)
        assert n < 3, "n is small"
        while n < 3:
            A[n] = V[0] if n > 2 else T.exp(A[1])
    for i in T.vectorized(4):
        A[i] = T.Select(i % 2 == 0, T.min(A[i], 1.0), T.max(A[i], 2.0))
    for t in T.thread_binding(8, thread="threadIdx.x"):
        if not (t < n and n >= 1):
            A[t:t + 4] = T.Broadcast(T.float32("nan"), 4)
        elif n // 2 == -3:
            A[0] = T.Let(x * 2, where={x: 1}) / T.float32(0.1)
        else:
            T.evaluate(T.call_extern("int32", "g", T.Shuffle([A[0:4]], [0, 3])))
    A.vstore([T.Ramp(0, 1, 4)], T.Broadcast(1.0, 4), predicate=T.Broadcast(True, 4))
    T.evaluate(T.Reduce(T.comm_reducer(lambda x, y: x + y, [0]), [n], [T.iter_var("k", (0, 4), "CommReduce")], True))
