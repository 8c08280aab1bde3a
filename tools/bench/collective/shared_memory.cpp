#include "bench/collective/shared_memory.hpp"

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

/// The path of rank 0, on all members.
std::string broadcast_path(communicator& group, const std::string& path) {
  std::vector<std::uint8_t> bytes(128);
  path.copy(reinterpret_cast<char*>(bytes.data()), bytes.size() - 1);
  auto where = group.allocate({1}).device();
  auto sent = tensor::from(bytes, {static_cast<std::int64_t>(bytes.size())}).to(where);
  group.broadcast(sent, 0).wait();
  auto here = sent.to({});
  return reinterpret_cast<const char*>(here.values<std::uint8_t>().data());
}

}  // namespace

shared_memory::shared_memory(communicator& group, std::size_t part_bytes)
    : part_bytes_(part_bytes), size_bytes_(part_bytes * static_cast<std::size_t>(group.size())) {
  unique_fd memory;
  if (group.rank() == 0) {
    memory = unique_fd(static_cast<int>(
        check_posix(::memfd_create("troupe-bench-parts", MFD_CLOEXEC), "make a memory file")));
    check_posix(::ftruncate(memory.get(), static_cast<off_t>(size_bytes_)), "size a memory file");
  }
  auto path =
      broadcast_path(group, "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory.get()));
  if (group.rank() != 0)
    memory =
        unique_fd(static_cast<int>(check_posix(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open " + path)));
  void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) check_posix(-1, "map a memory file");
  all_ = static_cast<std::byte*>(mapped);
  group.barrier().wait();  // rank 0 keeps its file open until all members have mapped it
}

shared_memory::~shared_memory() { ::munmap(all_, size_bytes_); }

}  // namespace troupe::bench
