// For tests: a model that decodes an image, in this process, and the files of decode_fuzz_seeds.
#pragma once

#include "abi/kernel_attributes_writer.h"
#include "runtime/core/program_fixture.h"
#include "runtime/kernels/images/decoding.h"

extern "C" const LatheRuntimeKernelTable lathe_runtime_kernels_images;

namespace lathe::images::testing {

using namespace runtime::testing;  // NOLINT: its fixtures are what these are made of

struct Decoder {
  TestArtifact artifact;
  Model model;

  explicit Decoder(PixelOrder order) {
    abi::ProgramWriter program;
    abi::FunctionWriter main = program.function("main");
    const std::string attributes = abi::AttributeWriter().word(static_cast<int64_t>(order)).take();
    program.input({.name = "encoded", .dtype = u8, .unknown_rank = true});
    program.output({.name = "image", .dtype = u8, .unknown_rank = true});
    const uint32_t encoded = main.parameter(abi::ValueKind::tensor, u8), image = main.reg(abi::ValueKind::tensor, u8);
    main.emit(abi::Opcode::call_runtime_kernel,
              {program.runtime_kernel("images.decode"), program.slice(attributes.data(), attributes.size()), 1, encoded,
               1, image},
              "Decoder_1");
    main.emit(abi::Opcode::return_values, {1, image});
    program.finish_function(std::move(main));
    artifact.program = program.finish();
    const LatheRuntimeKernelTable* tables[] = {&lathe_runtime_kernels_images};
    LatheOpenOptions options = {};
    options.size = sizeof(options);
    options.runtime_kernels = tables;
    options.runtime_kernel_tables = 1;
    model = open(artifact, &options);
  }

  // Null where the run failed. The limits are those of a machine that fears its callers.
  Value decode(const uint8_t* bytes, size_t count,
               LatheContextOptions limits = {.max_memory = 64 << 20, .timeout = 8'000'000'000}) const {
    const HostTensor<uint8_t> encoded(u8, {static_cast<int64_t>(count)}, std::vector<uint8_t>(bytes, bytes + count));
    const Value input(lathe_value_from_tensor(&encoded.view));
    if (input == nullptr) return nullptr;
    limits.threads = 1;
    std::vector<Value> results = run_values(context_of(model, limits), {input.get()}, 1);
    return results.empty() ? nullptr : std::move(results[0]);
  }
  Value decode(const std::string& bytes) const {
    return decode(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
};

}  // namespace lathe::images::testing
