#include "bench/collective/shared_parts.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::bench {
namespace {

/// Member 0's path, on all.
std::string told_by_first(communicator& group, const std::string& path) {
  std::vector<std::uint8_t> bytes(128);
  path.copy(reinterpret_cast<char*>(bytes.data()), bytes.size() - 1);
  auto where = group.allocate({1}).device();
  auto told = tensor::from(bytes, {static_cast<std::int64_t>(bytes.size())}).to(where);
  group.broadcast(told, 0).wait();
  auto here = told.to({});
  return reinterpret_cast<const char*>(here.values<std::uint8_t>().data());
}

}  // namespace

shared_parts::shared_parts(communicator& group, std::size_t part_bytes)
    : part_bytes_(part_bytes), size_bytes_(part_bytes * static_cast<std::size_t>(group.size())) {
  unique_fd memory;
  if (group.rank() == 0) {
    memory = unique_fd(static_cast<int>(
        check_posix(::memfd_create("troupe-bench-parts", MFD_CLOEXEC), "make a memory file")));
    check_posix(::ftruncate(memory.get(), static_cast<off_t>(size_bytes_)), "size a memory file");
  }
  auto path =
      told_by_first(group, "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory.get()));
  if (group.rank() != 0)
    memory =
        unique_fd(static_cast<int>(check_posix(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open " + path)));
  void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) check_posix(-1, "map a memory file");
  all_ = static_cast<std::byte*>(mapped);
  group.barrier().wait();  // the first one's file is open until all have it
}

shared_parts::~shared_parts() { ::munmap(all_, size_bytes_); }

}  // namespace troupe::bench
