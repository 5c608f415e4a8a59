// ELF64 after the System V gABI, chapter 4: one section of data, one symbol.
#include "codegen/llvm/weights_object.h"

#include <elf.h>
#include <fcntl.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sys/uio.h>
#include <unistd.h>

#include <deque>

#include "abi/artifact.h"
#include "codegen/emit/codes.h"

namespace lathe::codegen {
namespace {

constexpr std::string_view section_name = ".lathe_weights";

support::Diagnostic cannot_write(const std::string& path, int error) {
  return {.code = codes::file_failed,
          .message = fmt::format("'{}' cannot be written: {}", path, std::generic_category().message(error))};
}

// Writes a file from `offset` on, many megabytes at a time and up to multiples of a huge page: a file system that keeps
// files in pages of the size of what is written then has huge ones, which a process that maps the file sees as such.
// The first error ends it; close() tells.
class Writer {
 public:
  // `flags`: how the file is opened.
  Writer(std::string path, int flags, uint64_t offset)
      : path_(std::move(path)),
        file_(::open(path_.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666)),
        at_(offset),
        end_(next_end(offset)) {
    if (file_ < 0) error_ = errno;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    if (file_ >= 0) ::close(file_);
  }

  // `bytes` are read until the file is closed.
  void bytes(std::string_view bytes) {
    while (!bytes.empty() && error_ == 0) {
      const std::string_view piece = bytes.substr(0, end_ - at_ - pending_bytes_);
      pending_.push_back({const_cast<char*>(piece.data()), piece.size()});
      pending_bytes_ += piece.size();
      bytes.remove_prefix(piece.size());
      if (at_ + pending_bytes_ == end_ || pending_.size() == most_pieces) flush();
    }
  }

  template <class T>
  void record(const T& value) {
    records_.emplace_back(reinterpret_cast<const char*>(&value), sizeof(value));
    bytes(records_.back());
  }

  // Zeros up to that place in the file.
  void zeros_until(uint64_t offset) {
    static constexpr char zeros[4096] = {};
    const auto at = [&] { return at_ + pending_bytes_; };
    support::require(error_ != 0 || offset >= at(), "what is written overlaps");
    while (error_ == 0 && at() < offset) bytes({zeros, std::min<size_t>(sizeof(zeros), offset - at())});
  }

  support::Status close() {
    flush();
    if (file_ >= 0 && ::close(std::exchange(file_, -1)) != 0 && error_ == 0) error_ = errno;
    return error_ == 0 ? support::success() : support::Status(cannot_write(path_, error_));
  }

 private:
  static constexpr uint64_t huge_page = 2 << 20, most_bytes = 4 * huge_page;
  static constexpr size_t most_pieces = 512;  // of the 1,024 that a call takes
  static uint64_t next_end(uint64_t at) { return (at / huge_page + 1) * huge_page + most_bytes - huge_page; }

  void flush() {
    for (size_t first = 0; first < pending_.size() && error_ == 0;) {
      const ssize_t count =
          ::pwritev(file_, &pending_[first], static_cast<int>(pending_.size() - first), static_cast<off_t>(at_));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) error_ = count < 0 ? errno : ENOSPC;
      for (auto left = static_cast<size_t>(std::max<ssize_t>(count, 0)); left > 0;) {
        const size_t taken = std::min(left, pending_[first].iov_len);
        pending_[first].iov_base = static_cast<char*>(pending_[first].iov_base) + taken;
        pending_[first].iov_len -= taken;
        at_ += taken;
        left -= taken;
        if (pending_[first].iov_len == 0) ++first;
      }
    }
    pending_.clear();
    pending_bytes_ = 0;
    end_ = next_end(at_);
  }

  const std::string path_;
  int file_, error_ = 0;
  uint64_t at_, end_;  // what is written, and where the next writing ends
  std::vector<iovec> pending_;
  uint64_t pending_bytes_ = 0;
  std::deque<std::string> records_;
};

// The weights from `base` of the file on.
void write_weights(Writer& out, const ArtifactContents& contents, uint64_t base) {
  for (const WeightBytes& weight : contents.weights) {
    out.zeros_until(base + static_cast<uint64_t>(weight.offset));
    out.bytes(weight.bytes);
  }
  out.zeros_until(base + static_cast<uint64_t>(contents.weights_bytes));
}

support::Status write_weights_into(const ArtifactContents& contents, const std::string& path, int flags,
                                   uint64_t base) {
  Writer out(path, flags, base);
  write_weights(out, contents, base);
  return out.close();
}

Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t flags, uint64_t offset, uint64_t size, uint64_t align) {
  Elf64_Shdr header = {};
  header.sh_name = name, header.sh_type = type, header.sh_flags = flags;
  header.sh_offset = offset, header.sh_size = size, header.sh_addralign = align;
  return header;
}

}  // namespace

support::Status write_weights_file(const ArtifactContents& contents, const std::string& path) {
  return write_weights_into(contents, path, O_CREAT | O_TRUNC, 0);
}

support::Status write_weights_object(const ArtifactContents& contents, const std::string& symbol, Filled filled,
                                     const std::string& path) {
  const uint64_t data = LATHE_WEIGHTS_ALIGNMENT, size = static_cast<uint64_t>(contents.weights_bytes);
  std::string names("\0", 1);  // of sections and symbols together
  const auto name = [&](std::string_view text) {
    const auto at = static_cast<uint32_t>(names.size());
    names.append(text).push_back('\0');
    return at;
  };
  const uint32_t weights_name = name(section_name), symbols_name = name(".symtab"), names_name = name(".strtab"),
                 stack_name = name(".note.GNU-stack"), symbol_name = name(symbol);
  const bool later = filled == Filled::after_linking;
  const uint64_t symbols = (data + (later ? 0 : size) + 7) / 8 * 8, texts = symbols + 2 * sizeof(Elf64_Sym);
  const uint64_t headers = (texts + names.size() + 7) / 8 * 8;
  const bool arm = contents.kernels->target.triple.starts_with("aarch64");

  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL, header.e_machine = arm ? EM_AARCH64 : EM_X86_64, header.e_version = EV_CURRENT;
  header.e_shoff = headers, header.e_ehsize = sizeof(Elf64_Ehdr), header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = later ? 6 : 5, header.e_shstrndx = 3;

  Writer out(path, O_CREAT | O_TRUNC, 0);
  out.record(header);
  if (!later) write_weights(out, contents, data);
  out.zeros_until(symbols);
  out.record(Elf64_Sym{});
  Elf64_Sym entry = {};
  // Weak: two artifacts with the same weights in one program share them. Hidden: they are nobody else's.
  entry.st_name = symbol_name, entry.st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT), entry.st_other = STV_HIDDEN;
  entry.st_shndx = 1, entry.st_size = size;
  out.record(entry);
  out.bytes(names);
  out.zeros_until(headers);
  out.record(Elf64_Shdr{});
  // Sections of one name, of which one has contents, have contents together: lld makes room in the file for the one
  // without, and leaves it untouched.
  out.record(section(weights_name, later ? SHT_NOBITS : SHT_PROGBITS, SHF_ALLOC, data, size, LATHE_WEIGHTS_ALIGNMENT));
  Elf64_Shdr table = section(symbols_name, SHT_SYMTAB, 0, symbols, 2 * sizeof(Elf64_Sym), 8);
  table.sh_link = 3, table.sh_info = 1, table.sh_entsize = sizeof(Elf64_Sym);
  out.record(table);
  out.record(section(names_name, SHT_STRTAB, 0, texts, names.size(), 1));
  out.record(section(stack_name, SHT_PROGBITS, 0, headers, 0, 1));
  if (later) out.record(section(weights_name, SHT_PROGBITS, SHF_ALLOC | SHF_GNU_RETAIN, data, 0, 1));
  return out.close();
}

std::pair<uint64_t, uint64_t> find_weights_section(std::string_view elf) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof(header)) return {0, 0};
  std::memcpy(&header, elf.data(), sizeof(header));
  const auto section_at = [&](uint64_t number) {
    Elf64_Shdr s;
    const uint64_t at = header.e_shoff + number * sizeof(s);
    support::require(at + sizeof(s) <= elf.size(), "the linked file has no section table");
    std::memcpy(&s, elf.data() + at, sizeof(s));
    return s;
  };
  const Elf64_Shdr names = section_at(header.e_shstrndx);
  for (uint64_t s = 0; s < header.e_shnum; ++s) {
    const Elf64_Shdr each = section_at(s);
    if (std::string_view(elf.data() + names.sh_offset + each.sh_name) == section_name)
      return {each.sh_offset, each.sh_size};
  }
  return {0, 0};
}

support::Status fill_weights_section(const ArtifactContents& contents, const std::string& path) {
  const auto mapped = llvm::MemoryBuffer::getFile(path, false, false);
  if (!mapped) return cannot_write(path, mapped.getError().value());
  const auto [offset, size] = find_weights_section({(*mapped)->getBufferStart(), (*mapped)->getBufferSize()});
  support::require(size == static_cast<uint64_t>(contents.weights_bytes), "the linked file has no place for weights");
  return write_weights_into(contents, path, 0, offset);
}

}  // namespace lathe::codegen
