"""Names of the vocabulary that are left out, and why. Made by `python -m scripts.names`."""


_REASONS = {
    "I": {
        "functions of Python are not part of a module here":
            "pyfunc",
        "graphs on several devices are not here yet":
            "module_global_infos dummy_global_info vdevice lookup_vdevice",
    },
    "IRModule": {
        "names of functions are changed in the text":
            "replace_global_vars",
    },
    "R": {
        "a helper of programs that make functions, which the text has by Python's own assignments and returns":
            "emit_te func_ret_value SeqExpr If Then Else rewriter macro",
        "no effect happens inside a graph function":
            "print hint_on_device to_vdevice",
        "functions are known when a module is compiled":
            "invoke_closure invoke_pure_closure make_closure call_py_func call_builtin_with_ctx",
        "what a kernel may overwrite is found by the memory plan":
            "call_tir_inplace call_inplace_packed",
        "gradients are made from operators, and a tensor program has none":
            "call_tir_with_grad",
        "an argument that is not there is None":
            "null_value",
    },
    "Schedule": {
        "not in the releases that the vocabulary follows":
            "fuse_reduction_epilogue",
    },
    "T": {
        "a frame of the builder; a text says it by its signature (lathe.script.ir_builder has it)":
            "func_name func_ret arg",
        "a statement of the stage-based schedules, which blocks replaced":
            "realize",
        "steps of a calling convention that compiled code here does not have":
            "call_cpacked call_kernel tvm_tuple tvm_struct_get tvm_struct_set tvm_stack_alloca anylist_getitem "
            "anylist_resetitem anylist_setitem_call_packed anylist_setitem_call_cpacked",
        "no device with warps is generated for yet":
            "tvm_thread_allreduce tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down tvm_warp_activemask",
        "one vendor's hardware":
            "tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_fill_fragment tvm_store_matrix_sync ptx_mma "
            "ptx_mma_sp ptx_ldmatrix ptx_cp_async ptx_cp_async_bulk ptx_cp_async_barrier ptx_wait_group "
            "ptx_commit_group make_filled_simdgroup_matrix simdgroup_load simdgroup_store "
            "simdgroup_multiply_accumulate mma_store mma_fill dp4a start_profile_intrinsic end_profile_intrinsic",
        "a thread of a device that is none":
            "thread_return",
        "vectors have constant lengths here":
            "vscale",
    },
    "arith": {
        "sets of integer points are conditions here, which the analyzer and the schedule's proofs take as they are":
            "PresburgerSet",
    },
    "ir": {
        "operators are functions here":
            "Op",
        "places are read as node.span":
            "Span",
        "graphs on several devices are not here yet":
            "VDevice",
        "functions that are registered are called by their names":
            "EnvFunc",
    },
    "lathe": {
        "no search by measuring yet: schedules come from rules (docs/rules.md) or tir.Schedule":
            "meta_schedule auto_scheduler autotvm",
        "for devices that no code is generated for yet; processors have the rules of docs/rules.md":
            "dlight",
        "graphs are written in relax":
            "relay",
        "code of other libraries is called as it is (T.call_extern, R.ExternFunc)":
            "contrib",
        "programs run in the process that loads them":
            "rpc micro",
    },
    "runtime": {
        "libraries are linked by the user's linker":
            "load_static_library system_lib",
    },
    "te": {
        "threads are bound by the schedule":
            "thread_axis",
        "a tag is an argument of te.compute":
            "tag_scope",
        "the stage-based schedules, which tir.Schedule replaced":
            "create_schedule gradient hybrid decl_tensor_intrin",
    },
    "tir": {
        "nodes of the stage-based schedules, which blocks replaced":
            "ProducerLoad BufferRealize",
        "lathe.script.ir_builder is the builder":
            "ir_builder",
    },
    "tir.transform": {
        "compiled code has no calling convention of that kind":
            "MakePackedAPI",
        "no device of that kind is generated for yet":
            "SplitHostDevice InjectVirtualThread InjectDoubleBuffer InjectSoftwarePipeline ThreadSync "
            "LowerThreadAllreduce DefaultGPUSchedule",
    },
}

LEFT_OUT = {
    space: {name: reason for reason, names in rows.items() for name in names.split()}
    for space, rows in _REASONS.items()
}
