// LLVM's description of a target, the passes that run over a kernel's module, and what comes out. Private to this
// folder.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/emit/effort.h"
#include "codegen/emit/kernel.h"

namespace lathe::codegen {

// Registers the architectures once.
void initialise_llvm();

support::Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const target::Target& target,
                                                                   Effort effort = Effort::full);

// Triple and layout of a module for the target.
void describe_module(llvm::Module& module, const target::Target& target, llvm::TargetMachine& machine);

// CPU, features and vector width on a function: what LLVM's passes ask.
void set_target_attributes(llvm::Function& function, const target::Target& target);

// The passes worth their time on code that is already scheduled; for little effort those without which buffers of scope
// register would be memory.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, Effort effort = Effort::full);

// An attribute of functions whose instructions are not scheduled anew (codegen/emit/order.h).
inline constexpr llvm::StringLiteral kept_order = "lathe-keeps-order";

// Object, assembly or IR text of the module.
std::string write_module(llvm::Module& module, llvm::TargetMachine& machine, EmitKind kind);

}  // namespace lathe::codegen
