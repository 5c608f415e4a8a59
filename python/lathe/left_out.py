"""Names of the vocabulary that are left out, and why. Made by `python -m scripts.names`."""


_REASONS = {
    "Device": {
        "a processor has no streams":
            "create_raw_stream free_raw_stream set_raw_stream",
    },
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
    "Module": {
        "a module is for one device":
            "import_module",
        "get_source gives a module's code as text, export_library writes it":
            "save",
    },
    "R": {
        "a helper of programs that make functions, which the text has by Python's own assignments and returns":
            "emit_te func_ret_value SeqExpr If Then Else rewriter macro",
        "no effect happens inside a graph function":
            "print hint_on_device to_vdevice",
        "functions are known when a module is compiled":
            "invoke_closure invoke_pure_closure make_closure call_py_func call_builtin_with_ctx",
        "what a kernel may overwrite is found by the memory plan":
            "call_inplace_packed",
        "gradients are made from operators, and a tensor program has none":
            "call_tir_with_grad",
        "an argument that is not there is None":
            "null_value",
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
    "VirtualMachine": {
        "functions are known when a module is compiled":
            "invoke_closure",
        "kernels run without a step between; `lathe bench --profile` times each":
            "set_instrument",
        "`lathe bench --profile` times each kernel, beside what it could do":
            "profile",
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
            "rpc micro exec",
        "no code is generated for such a device yet":
            "cuda opencl vulkan metal rocm webgpu vpi ext_dev hexagon",
        "lathe.build lowers what it is given; lathe.tir.transform has each pass":
            "lower",
    },
    "relax": {
        "what runs is compiled code, and no machine of instructions":
            "ExecBuilder VMExecutable",
        "graph functions are written as text (R.function) or imported, not built from Python's nodes yet":
            "Var Call Function Expr Constant Tuple TupleGetItem PrimValue ShapeExpr const op BlockBuilder "
            "TensorStructInfo DynTensorType expr_functor PyExprMutator PyExprVisitor analysis testing dpl",
        "lathe.import_onnx, lathe.compile and the command `lathe` read models":
            "frontend",
        "no library of others is called on its own":
            "backend",
        "lathe.transform.Sequential makes one, and build takes it":
            "pipeline get_pipeline register_pipeline",
    },
    "runtime": {
        "libraries are linked by the user's linker":
            "load_static_library system_lib",
        "what lathe.build gives is a Module, with `mod` and `jit`, what lathe.compile gives a lathe.Executable":
            "Executable",
        "`lathe bench --profile` times each kernel, beside what it could do":
            "profiling",
        "programs run in the process that loads them":
            "disco",
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
    "tir.schedule": {
        "a loop or a block is its own place":
            "StmtSRef",
        "dependences are asked for by get_producers and get_consumers, and proved by the primitives":
            "BlockScope DepKind Dependency",
    },
    "tir.schedule.analysis": {
        "tensorize itself matches a description up to layout and the order of operands":
            "get_auto_tensorize_mapping_info",
    },
    "tir.transform": {
        "compiled code has no calling convention of that kind":
            "MakePackedAPI LowerTVMBuiltin MakeUnpackedAPI CombineContextCall ExtractPrimFuncConstants "
            "PointerValueTypeRewrite UnifiedStaticMemoryPlanner",
        "no device of that kind is generated for yet":
            "SplitHostDevice InjectVirtualThread InjectDoubleBuffer InjectSoftwarePipeline ThreadSync "
            "LowerThreadAllreduce DefaultGPUSchedule UnifyThreadBinding LiftThreadBinding "
            "LowerCrossThreadReduction LowerDeviceKernelLaunch LowerDeviceStorageAccessInfo LowerWarpMemory "
            "LowerAutoCopy ManifestSharedMemoryLocalStage MergeSharedMemoryAllocations AnnotateDeviceRegions "
            "DecorateDeviceScope RemapThreadAxis",
        "calls of a module's functions are inlined by InlineCalls":
            "InlinePrivateFunctions",
        "NarrowDataType narrows what is shown to fit, and nothing else":
            "ForceNarrowIndexToInt32",
        "branches are hoisted by HoistIfThenElse, expressions by CommonSubexprElimTIR":
            "HoistExpression",
        "dtypes are the language's own":
            "LowerCustomDatatypes",
        "one vendor's hardware":
            "LowerVtcmAlloc LowerAsyncDMA InjectPermutedLayout InjectPTXAsyncCopy InjectPTXLDG32 InferFragment "
            "TransformMmaBufferLayout TextureFlatten VerifyVTCMLimit",
        "the schedule's primitive makes the whole program":
            "InjectRollingBuffer RemoveWeightLayoutRewriteBlock",
        "loops that are left early are LowerLoopExits'":
            "AnnotateIrregularLoop",
        "narrow floats are stored as they are, and computed by BF16ComputeLegalize":
            "BF16StorageLegalize FP8ComputeLegalize FP8StorageLegalize",
        "the interpreter checks every access, and tir.analysis.oob_checker before it runs":
            "InstrumentBoundCheckers",
        "kernels are timed by `lathe bench --profile`":
            "InstrumentProfileIntrinsics",
        "Simplify and LoopPartition take the branches out":
            "ReduceBranchingThroughOvercompute UseAssumeToReduceBranches RenormalizeSplitPattern",
        "FlattenBuffer is its name since 2022":
            "StorageFlatten",
    },
}

LEFT_OUT = {
    space: {name: reason for reason, names in rows.items() for name in names.split()}
    for space, rows in _REASONS.items()
}
