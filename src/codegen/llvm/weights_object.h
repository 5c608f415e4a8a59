// A relocatable ELF object that holds the weights and nothing else. Private to this folder.
#pragma once

#include "codegen/llvm/link.h"

namespace lathe::codegen {

// After linking: the object has no bytes of them, and the linked file a place that reads as zeros until they are put
// there. A linker that copies them through a mapping of its output takes five times as long as to write them.
enum class Filled : uint8_t { at_once, after_linking };

// Writes `weights` as section .lathe_weights, aligned to a page, under the symbol; byte for byte from where they lie.
support::Status write_weights_object(const ArtifactContents& contents, const std::string& symbol, Filled filled,
                                     const std::string& path);

// Writes the weights into the section of a linked file.
support::Status fill_weights_section(const ArtifactContents& contents, const std::string& path);

// The weights alone, for the file beside an artifact.
support::Status write_weights_file(const ArtifactContents& contents, const std::string& path);

// Where section .lathe_weights lies in a linked file: offset and bytes; zeros when there is none.
std::pair<uint64_t, uint64_t> find_weights_section(std::string_view elf);

}  // namespace lathe::codegen
