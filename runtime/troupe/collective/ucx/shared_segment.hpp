#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// A stretch of this process's addresses, unmapped at the end.
class mapping {
 public:
  mapping(std::byte* first, std::size_t size_bytes) : first_(first), size_bytes_(size_bytes) {}
  ~mapping();
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  std::byte* first() const { return first_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Gives the stretch up without unmapping it.
  void forget() { first_ = nullptr; }

 private:
  std::byte* first_;
  std::size_t size_bytes_;
};

/// Memory that other processes can map when they are given its descriptor. It is named by a number of its
/// owner's process that is never used again. Its size cannot change, so nobody who has mapped it can be made
/// to touch a page that is not there.
struct shared_segment {
  std::uint64_t id = 0;
  std::size_t size_bytes = 0;
  unique_fd fd;
};

/// Multiples of this.
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t whole_pages(std::size_t size_bytes) {
  return (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// Zero bytes in whole pages. Throws system_failure.
std::shared_ptr<shared_segment> make_segment(std::uint64_t id, std::size_t size_bytes);
/// All of it, with its pages in place. Throws system_failure.
std::unique_ptr<mapping> map_segment(int fd, std::size_t size_bytes);
/// A segment that another process gave: throws system_failure or std::runtime_error if it is not
/// `size_bytes` large, or could shrink.
std::unique_ptr<mapping> map_foreign_segment(int fd, std::size_t size_bytes);

}  // namespace troupe
