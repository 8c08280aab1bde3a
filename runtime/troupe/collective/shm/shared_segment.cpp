#include "troupe/collective/shm/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <stdexcept>

#include "troupe/error/errors.hpp"

namespace troupe {

mapping::~mapping() {
  if (first_) ::munmap(first_, size_bytes_);
}

std::shared_ptr<shared_segment> make_segment(std::uint64_t id, std::size_t size_bytes) {
  auto made = std::make_shared<shared_segment>();
  made->id = id;
  made->size_bytes = whole_pages(size_bytes);
  made->fd = unique_fd(
      static_cast<int>(check_posix(::memfd_create("troupe", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                                   "make a shared segment (if descriptors have run out, raise ulimit -n)")));
  check_posix(::ftruncate(made->fd.get(), static_cast<off_t>(made->size_bytes)), "size a shared segment");
  check_posix(::fcntl(made->fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              "seal a shared segment");
  return made;
}

std::unique_ptr<mapping> map_segment(int fd, std::size_t size_bytes) {
  auto* memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw system_failure("map a shared segment", errno);
  auto mapped = std::make_unique<mapping>(static_cast<std::byte*>(memory), size_bytes);
  // Large pages where the system allows them for shared memory; then all pages at once, not by one fault
  // each.
  ::madvise(memory, size_bytes, MADV_HUGEPAGE);
#if defined(MADV_POPULATE_WRITE)
  if (::madvise(memory, size_bytes, MADV_POPULATE_WRITE) != 0 && errno == ENOMEM)
    throw system_failure("fill a shared segment with memory", errno);
#endif
  return mapped;
}

std::unique_ptr<mapping> map_received_segment(int fd, std::size_t size_bytes) {
  struct stat status {};
  check_posix(::fstat(fd, &status), "look at a shared segment");
  auto seals = check_posix(::fcntl(fd, F_GET_SEALS), "look at the seals of a shared segment");
  if ((seals & F_SEAL_SHRINK) == 0 || static_cast<std::size_t>(status.st_size) != size_bytes)
    throw std::runtime_error("[shared segment] expected " + std::to_string(size_bytes) +
                             " bytes sealed against shrinking, got " + std::to_string(status.st_size));
  return map_segment(fd, size_bytes);
}

}  // namespace troupe
