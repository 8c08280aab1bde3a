#pragma once
#include <cstddef>

#include "troupe/collective/communicator.hpp"

namespace troupe::bench {

/// Memory that the members of a group on one host share, a part for each, apart from what the group itself
/// shares.
class shared_memory {
 public:
  /// All members do this alike.
  shared_memory(communicator& group, std::size_t part_bytes);
  ~shared_memory();
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;

  std::byte* part(int member) const { return all_ + static_cast<std::size_t>(member) * part_bytes_; }

 private:
  std::size_t part_bytes_, size_bytes_;
  std::byte* all_ = nullptr;
};

}  // namespace troupe::bench
