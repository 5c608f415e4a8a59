# The rooms of the house, lowest first, and what each sees (seeing is transitive). The build links each room's library
# against what it sees; scripts/checks/layers.py reads the same rows and refuses an include that they do not allow.
# A row is a folder under src/; "x/*" stands for every folder in x that has no row of its own: its siblings do not see
# each other. A folder without a row belongs to the nearest row above it. Rooms that do not exist on disk are skipped.
set(LATHE_ROOMS
  "abi:"
  "support: abi"
  "runtime: abi"
  "runtime/kernels/*: runtime"
  "target: support runtime/cpu"
  "ir: support"
  "script: ir"
  "arith: ir"
  "arith/polyhedral: arith"
  "tir: arith script target"
  "schedule: tir arith/polyhedral"
  "te: schedule"
  "relax: te"
  "ops: relax"
  "graph: ops"
  "lower: graph abi"
  "codegen/emit: tir abi"
  "codegen/*: codegen/emit"
  "library: lower abi"
  "interchange: ops"
  "tune: schedule"
  "driver: interchange tune library lower codegen runtime runtime/kernels/strings runtime/kernels/images"
)

# Rooms above its own that a room's test binary or a fuzz target links besides, as in "tir_test: codegen/null" (both are
# exempt from the layers). Tests run in the build folder.
set(LATHE_TESTS_SEE
  "tir_test: driver"  # the order of the passes
  "schedule_test: driver"
  "runtime_test: support"
  "script_test: tir"
  "relax_test: ops"
  "text_fuzz: ops"
  "lower_test: runtime"
  "codegen_llvm_test: runtime"
)

# Sources that builds from nothing compile by themselves, because their headers disturb others in one unit.
set(LATHE_NOT_UNITED
  arith/rules/rules_proof_test.cpp  # Z3's operators beside ours
)
