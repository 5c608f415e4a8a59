#include "interchange/onnx/read/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/names.h"

namespace lathe::onnx {

using support::Diagnostic;
using support::Result;

namespace {

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string reason(int error) { return std::generic_category().message(error); }

// The descriptor's bytes, or why there are none.
std::variant<Bytes, std::string> map(const Descriptor& file) {
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) return "cannot be examined: " + reason(errno);
  if (S_ISDIR(status.st_mode)) return std::string("is a folder, not a file");
  if (!S_ISREG(status.st_mode)) return std::string("is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return Bytes{};
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) return "cannot be mapped: " + reason(errno);
  std::shared_ptr<const void> owner(address, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return Bytes{{static_cast<const char*>(address), size}, std::move(owner)};
}

// O_NONBLOCK: a pipe without a writer must not block.
constexpr int reading = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

}  // namespace

Result<Bytes> map_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Diagnostic{.code = codes::cannot_read, .place = support::ModelNode{printable(path), "", ""}, .message = why};
  };
  if (path.find('\0') != std::string::npos) return refuse("the path holds a zero byte");
  const Descriptor file(::open(path.c_str(), reading));
  if (file.fd < 0) return refuse("the model cannot be opened: " + reason(errno));
  auto mapped = map(file);
  if (const auto* why = std::get_if<std::string>(&mapped)) return refuse("the model " + *why);
  return std::get<Bytes>(std::move(mapped));
}

Result<Bytes> map_external(const std::string& folder, const std::string& location, support::Place place) {
  const auto refuse = [&](const std::string& why) {
    return Diagnostic{.code = codes::external_data,
                      .place = std::move(place),
                      .message = "the external data " + in_quotes(location) + " " + why};
  };
  if (location.empty()) return refuse("names no file");
  if (folder.empty()) return refuse("cannot be found, because the model did not come from a file");
  if (location.find('\0') != std::string::npos) return refuse("has a zero byte in its path");
  if (location.front() == '/') return refuse("is an absolute path; it must lie in the model's folder");

  // Component by component without following links, so that nothing changed meanwhile can lead elsewhere.
  Descriptor at(::open(folder.c_str(), reading | O_DIRECTORY));
  if (at.fd < 0) return refuse("cannot be found, because the model's folder cannot be opened: " + reason(errno));
  std::string_view rest = location;
  while (true) {
    const size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    const bool last = slash == std::string_view::npos;
    if (part == "..") return refuse("leads out of the model's folder");
    if (last && (part.empty() || part == ".")) return refuse("is a folder, not a file");
    if (!part.empty() && part != ".") {
      Descriptor next(::openat(at.fd, part.c_str(), reading | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
      if (next.fd < 0) {
        struct stat status{};
        const int error = errno;
        if (::fstatat(at.fd, part.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
          return refuse("is reached by a symbolic link, which could lead out of the model's folder");
        return refuse("cannot be opened: " + reason(error));
      }
      at = std::move(next);
    }
    if (last) break;
    rest.remove_prefix(slash + 1);
  }
  auto mapped = map(at);
  if (const auto* why = std::get_if<std::string>(&mapped)) return refuse(*why);
  // Whoever packs a folder can give any file of theirs to read a name in it. (ONNX's own checker refuses it too.)
  struct stat status{};
  if (::fstat(at.fd, &status) != 0 || status.st_nlink > 1)
    return refuse(fmt::format(
        "has {} hard links, so it may be a file from outside of the model's folder; a copy has one", status.st_nlink));
  return std::get<Bytes>(std::move(mapped));
}

}  // namespace lathe::onnx
