#include "troupe/shared_memory/peer_heap.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <string>
#include <utility>

namespace troupe::shared_memory {
namespace {

/// What a link of /proc leads to; empty if it cannot be read.
std::string target_of(const std::string& link) {
  std::array<char, 256> target{};
  auto size = ::readlink(link.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

bool peer_heap::map(std::uint64_t id, int fd, std::size_t size_bytes) {
  if (mapped_.contains(id)) return true;
  auto name = "/memfd:" + segment_name(of_.name, id) + " (deleted)";
  auto link = "/proc/" + std::to_string(of_.process) + "/fd/" + std::to_string(fd);
  // First, since to open something else might block. And afterwards, since it may be replaced in between.
  if (target_of(link) != name) return false;
  posix::unique_fd opened(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened || target_of("/proc/self/fd/" + std::to_string(opened.get())) != name) return false;
  try {
    mapped_.emplace(id, map_received_for_reading(opened.get(), size_bytes));
  } catch (const std::exception&) {  // no memory for it, or not what was announced
    return false;
  }
  return true;
}

std::optional<tensor> peer_heap::refer_to(std::uint64_t id, std::uint64_t offset, shape extents,
                                          dtype type) const {
  auto found = mapped_.find(id);
  if (found == mapped_.end()) return {};
  const auto& memory = found->second;
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(extents.num_elements()), size_bytes(type), &size) ||
      offset > memory->size_bytes() || size > memory->size_bytes() - offset || offset % size_bytes(type) != 0)
    return {};
  return tensor::wrap(memory, memory->first() + offset, std::move(extents), type);
}

}  // namespace troupe::shared_memory
