#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// A range of this process's address space, unmapped by the destructor.
class mapping {
 public:
  mapping(std::byte* first, std::size_t size_bytes) : first_(first), size_bytes_(size_bytes) {}
  ~mapping();
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  std::byte* first() const { return first_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Gives the range up without unmapping it.
  void release() { first_ = nullptr; }

 private:
  std::byte* first_;
  std::size_t size_bytes_;
};

/// Memory that other processes can map when they receive its descriptor (a sealed memfd). Its id is unique in
/// the owner's process and never used again. Its size cannot change, so no process that has mapped it can be
/// made to access a page that does not exist.
struct shared_segment {
  std::uint64_t id = 0;
  std::size_t size_bytes = 0;
  unique_fd fd;
};

/// Segments are multiples of this.
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t whole_pages(std::size_t size_bytes) {
  return (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// Zero bytes in whole pages. Throws system_failure.
std::shared_ptr<shared_segment> make_segment(std::uint64_t id, std::size_t size_bytes);
/// Maps all of it and allocates its pages. Throws system_failure.
std::unique_ptr<mapping> map_segment(int fd, std::size_t size_bytes);
/// Maps a segment of another process. Throws system_failure, and std::runtime_error if its size is not
/// `size_bytes` or could shrink.
std::unique_ptr<mapping> map_received_segment(int fd, std::size_t size_bytes);

}  // namespace troupe
