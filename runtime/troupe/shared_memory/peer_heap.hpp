#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "troupe/shared_memory/shared_heap.hpp"

namespace troupe::shared_memory {

/// Where the shared_heap of a process is found by others of its host.
struct heap_address {
  pid_t process = 0;
  heap_name name{};
};

/// The shared_heap of another process, whose segments this process reads. It opens them through /proc, which
/// is possible on the same host, in the same PID namespace and for the same user. Not thread-safe.
class peer_heap {
 public:
  explicit peer_heap(const heap_address& of) : of_(of) {}

  /// Maps segment `id`, which the other process has as descriptor `fd`. False: it cannot be opened, or what
  /// is opened is not that segment, as of a process on another host.
  bool map(std::uint64_t id, int fd, std::size_t size_bytes);
  /// Tensors that refer to it keep it mapped.
  void unmap(std::uint64_t id) { mapped_.erase(id); }
  /// A tensor in the memory of a mapped segment, of which nothing may be written. Nothing if the segment is
  /// not mapped, or not all elements are in it, or they are not aligned.
  std::optional<tensor> refer_to(std::uint64_t id, std::uint64_t offset, shape extents, dtype type) const;

 private:
  heap_address of_;
  std::map<std::uint64_t, std::shared_ptr<mapping>> mapped_;
};

}  // namespace troupe::shared_memory
