// What features mean: the levels of x86-64, the vector width and register count that follow from a set.
#pragma once

#include "target/target.h"

namespace lathe::target {

// The features that x86-64-v2, v3 and v4 stand for, in LLVM's names (x86-64 psABI, "Micro-architecture levels").
std::set<std::string> x86_level_features(int level);

// Sets vector_bits and vector_registers from architecture and features.
void derive_vectors(Target& target);

// Whether triple, cpu and features are made of letters, digits and _ . + - alone, features without a sign in front.
// Others are no names of LLVM's, and would make texts of different targets equal, or no text at all.
bool has_plain_names(const Target& target);
inline constexpr const char* plain_names_only =
    "the triple, cpu and features of a target are made of letters, digits, '_', '.', '+' and '-' alone, "
    "and no feature's name begins with a sign";

// The part of a triple before the first '-'.
std::string architecture(const std::string& triple);

}  // namespace lathe::target
