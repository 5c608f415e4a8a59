#include "driver/artifact/save.h"

#include <stdlib.h>
#include <unistd.h>

#include "abi/program_printer.h"
#include "codegen/emit/backends.h"
#include "codegen/llvm/link.h"
#include "driver/artifact/kernel_families.h"
#include "driver/artifact/metadata.h"
#include "driver/codes.h"
#include "driver/script_file.h"
#include "tir/script/numpy_text.h"

namespace lathe::driver {
namespace {

namespace fs = std::filesystem;
using support::Diagnostic;
using support::Result;
using support::Status;

Diagnostic cannot_write(const std::string& path, const std::string& why) {
  return {.code = codes::cannot_write, .message = fmt::format("'{}' cannot be written: {}", path, why)};
}

// The file appears whole or not at all: written beside its place under another name, then renamed.
Status write_whole(const std::string& path, std::string_view bytes) {
  std::string partial = path + ".partial-XXXXXX";
  const int file = ::mkstemp(partial.data());
  if (file < 0) return cannot_write(path, std::error_code(errno, std::generic_category()).message());
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = ::write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  const std::string why = std::error_code(errno, std::generic_category()).message();
  std::error_code failure;
  fs::permissions(partial,
                  fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read | fs::perms::others_read,
                  failure);
  if (::close(file) == 0 && written == bytes.size()) {
    fs::rename(partial, path, failure);
    if (!failure) return support::success();
  }
  fs::remove(partial, failure);
  return cannot_write(path, why);
}

std::vector<codegen::Kernel> kernels_of(const CompiledModel& model) {
  std::vector<codegen::Kernel> kernels;
  if (!model.program) return kernels;
  for (const std::string& name : model.program->kernels)
    kernels.push_back({name, model.module.find_as<tir::PrimFunc>(name)});
  return kernels;
}

// "my-model.v2.a" gives my_model_v2: what C names of an archive begin with.
std::string prefix_of(const std::string& path) {
  std::string prefix = fs::path(path).stem().string();
  for (char& c : prefix)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (prefix.empty() || std::isdigit(static_cast<unsigned char>(prefix[0]))) prefix = "model_" + prefix;
  return prefix;
}

Diagnostic no_code(const CompiledModel& model, const std::string& name) {
  return {.code = codes::no_code,
          .message = fmt::format("the target '{}' gives no machine code to save as '{}'", model.target.kind, name),
          .help = "--emit listing, relax or tir write what there is"};
}

codegen::ArtifactContents contents_of(const CompiledModel& model) {
  const lower::Program& program = *model.program;
  codegen::ArtifactContents contents;
  contents.kernels = &model.kernels;
  contents.program = program.view();
  contents.functions = &model.functions;
  contents.metadata = metadata_of(model);
  for (const lower::Weight& weight : program.weights)
    contents.weights.push_back(
        {weight.offset, weight.data->view(), {weight.data->content_high, weight.data->content_low}});
  contents.weights_bytes = program.weight_bytes;
  contents.runtime_kernels = program.runtime_kernels;
  // The objects at hand are this machine's; an artifact for another architecture gets its kernels when it is opened.
  static const std::string own = target::native_target().triple;
  if (own.substr(0, own.find('-')) != contents.metadata.at("architecture")) return contents;
  for (const KernelFamily& family : kernel_families()) {
    codegen::LinkedKernels linked{family.object, {}};
    for (const std::string& name : program.runtime_kernels)
      if (name.starts_with(std::string(family.name) + ".")) linked.names.push_back(name);
    if (!linked.names.empty()) contents.linked_kernels.push_back(std::move(linked));
  }
  return contents;
}

Status save_linked(const CompiledModel& model, codegen::ArtifactForm form, const std::string& path) {
  const std::string name = fs::path(path).extension().string();
  if (model.target.kind != "llvm") return no_code(model, name);
  const std::string prefix = prefix_of(path);
  TRY(codegen::link_artifact(contents_of(model), {.form = form, .prefix = prefix}, path));
  if (form == codegen::ArtifactForm::shared_library) return support::success();
  return write_whole(fs::path(path).replace_extension(".h").string(), codegen::artifact_header(prefix));
}

// What the target's backend makes of the kernels, as text.
Status save_text(const CompiledModel& model, codegen::EmitKind kind, const std::string& path) {
  const codegen::Backend* backend = codegen::find_backend(model.target.kind);
  if (!backend) return no_code(model, std::string(codegen::emit_kind_name(kind)));
  return write_whole(path, TRY(backend->emit(kernels_of(model), model.target, {.kind = kind})));
}

Status save_so(const CompiledModel& m, const std::string& path) {
  return save_linked(m, codegen::ArtifactForm::shared_library, path);
}
Status save_o(const CompiledModel& m, const std::string& path) {
  return save_linked(m, codegen::ArtifactForm::object, path);
}
Status save_a(const CompiledModel& m, const std::string& path) {
  return save_linked(m, codegen::ArtifactForm::archive, path);
}
Status save_ll(const CompiledModel& m, const std::string& path) {
  return save_text(m, codegen::EmitKind::llvm_ir, path);
}
Status save_s(const CompiledModel& m, const std::string& path) {
  return save_text(m, codegen::EmitKind::assembly, path);
}
Status save_module(const CompiledModel& m, const std::string& path) { return write_script(m.module, path); }

Status save_numpy(const CompiledModel& m, const std::string& path) {
  return write_whole(path, TRY(tir::numpy_text(m.module)));
}

Status save_listing(const CompiledModel& m, const std::string& path) {
  return save_text(m, codegen::EmitKind::listing, path);
}
Status save_program(const CompiledModel& m, const std::string& path) {
  std::vector<uint64_t> aligned((m.program->bytes.size() + 7) / 8);
  std::memcpy(aligned.data(), m.program->bytes.data(), m.program->bytes.size());
  abi::ProgramView view;
  const char* problem = view.parse(aligned.data(), m.program->bytes.size());
  support::require(!problem, "the register program that was just written cannot be read");
  return write_whole(path, abi::print_program(view));
}

// The register program as machine code, for people.
Status save_program_text(const CompiledModel& m, codegen::EmitKind kind, const std::string& path) {
  if (m.target.kind != "llvm") return no_code(m, fs::path(path).extension().string());
  return write_whole(path, TRY(codegen::emit_program(m.program->view(), m.target, kind)));
}
Status save_program_ll(const CompiledModel& m, const std::string& path) {
  return save_program_text(m, codegen::EmitKind::llvm_ir, path);
}
Status save_program_s(const CompiledModel& m, const std::string& path) {
  return save_program_text(m, codegen::EmitKind::assembly, path);
}

using SaveFunction = Status (*)(const CompiledModel&, const std::string&);
struct Writer {
  Form form;
  SaveFunction save;
  std::string_view stop_row;
};

const Writer writers[] = {
    {{"so", ".so", "a shared library"}, save_so, ""},
    {{"o", ".o", "one object, with a header"}, save_o, ""},
    {{"a", ".a", "an archive, with a header"}, save_a, ""},
    {{"ll", ".ll", "LLVM IR"}, save_ll, ""},
    {{"s", ".s", "assembly"}, save_s, ""},
    {{"relax", ".relax", "the graph before fusion"}, save_module, "eliminate_dead_code"},
    {{"tir", ".tir", "the graph and its tensor programs, unscheduled"}, save_module, "legalize"},
    {{"py", ".py", "the tensor programs, unscheduled, as loops over NumPy arrays"}, save_numpy, "legalize"},
    {{"program", ".program", "the register program"}, save_program, ""},
    {{"program-ll", ".program-ll", "the register program as LLVM IR"}, save_program_ll, ""},
    {{"program-s", ".program-s", "the register program as assembly"}, save_program_s, ""},
    {{"listing", ".listing", "what the kernels are made of"}, save_listing, ""},
};

const Writer& writer_of(const Form& form) {
  for (const Writer& writer : writers)
    if (writer.form.name == form.name) return writer;
  support::unreachable("a form without a writer");
}

std::string names_of(std::string_view Form::* member) {
  std::string text;
  for (const Form& form : forms()) text += (text.empty() ? "" : ", ") + std::string(form.*member);
  return text;
}

}  // namespace

const std::vector<Form>& forms() {
  static const std::vector<Form> all = [] {
    std::vector<Form> made;
    for (const Writer& writer : writers) made.push_back(writer.form);
    return made;
  }();
  return all;
}

Result<const Form*> form_of_path(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  for (const Form& form : forms())
    if (form.extension == extension) return &form;
  return Diagnostic{
      .code = codes::unknown_form,
      .message = extension.empty()
                     ? fmt::format("'{}' has no extension that says what to write", path)
                     : fmt::format("the extension '{}' of '{}' says nothing of what to write", extension, path),
      .help = "extensions are " + names_of(&Form::extension) + "; --emit chooses by name"};
}

Result<const Form*> form_named(const std::string& name) {
  for (const Form& form : forms())
    if (form.name == name) return &form;
  return Diagnostic{.code = codes::unknown_form,
                    .message = fmt::format("there is no form of output '{}'", name),
                    .help = "forms are " + names_of(&Form::name)};
}

Status save(const CompiledModel& model, const Form& form, const std::string& path) {
  return writer_of(form).save(model, path);
}

std::string stop_row(const Form& form) { return std::string(writer_of(form).stop_row); }

}  // namespace lathe::driver
