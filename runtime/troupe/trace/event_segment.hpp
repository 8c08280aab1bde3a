#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/posix/unique_fd.hpp"
#include "troupe/trace/event_ring.hpp"
#include "troupe/trace/process_events.hpp"

namespace troupe::trace {

/// How much a segment can hold. It takes 64 bytes an event, and memory only for what was written: at the
/// most 64 MiB + 72 KiB by default.
struct event_segment_size {
  std::uint32_t num_rings = 64;              ///< threads that can record at one time
  std::uint32_t events_per_ring = 1U << 14;  ///< newer ones overwrite older ones
  std::uint32_t num_names = 1024;            ///< of threads, groups and actors; 64 bytes each
};

/// Where things lie in the memory of a segment. Layout, version 1, native byte order:
///
///     0      header: 64 bytes, and padding to 4096
///     4096   num_names x name: 64 bytes
///     then   num_rings x (event_ring_header: 64 bytes; events_per_ring x event_slot: 64 bytes)
class event_segment_layout {
 public:
  static constexpr std::uint32_t version = 1;
  static constexpr std::uint64_t magic = 0x746e657665707274;  // "trpevent"
  struct alignas(64) header {
    std::uint64_t magic = 0;
    std::uint32_t version = 0;
    std::uint32_t num_rings = 0, events_per_ring = 0, num_names = 0;
    std::int32_t rank = 0;
    std::uint32_t incarnation = 0;
    std::atomic<std::uint32_t> pid = 0;
    std::atomic<std::uint64_t> num_unrecorded = 0, num_unnamed = 0;
  };
  struct name {
    static constexpr std::size_t most_bytes = 60;
    std::atomic<std::uint32_t> length = 0;  ///< of the text, plus 1; 0: there is no name yet
    char text[most_bytes] = {};
  };

  event_segment_layout(std::byte* memory, const event_segment_size& size) : memory_(memory), size_(size) {}
  static std::size_t size_bytes(const event_segment_size& size);

  header& head() const { return *reinterpret_cast<header*>(memory_); }
  name& name_at(std::size_t index) const;
  event_ring_header& ring_at(std::size_t index) const;
  event_slot* slots_at(std::size_t index) const;
  const event_segment_size& size() const { return size_; }

 private:
  std::byte* memory_;
  event_segment_size size_;
};
static_assert(sizeof(event_segment_layout::header) == 64 && sizeof(event_segment_layout::name) == 64);

/// Pages of memory, shared through a file or of this process alone.
class event_memory {
 public:
  explicit event_memory(std::size_t size_bytes, int file = -1, bool is_read_only = false);
  ~event_memory();
  event_memory(const event_memory&) = delete;
  event_memory& operator=(const event_memory&) = delete;
  std::byte* get() const { return memory_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// The event rings of one process in one piece of memory. In a memfd that another process holds too, it
/// outlives its own process, however that ended.
class event_segment {
 public:
  /// In memory of this process.
  explicit event_segment(const event_segment_size& size = {}, int rank = 0, std::uint32_t incarnation = 0);
  /// In a memfd, for a process to be started. Throws system_failure.
  static posix::unique_fd make_file(const event_segment_size& size, int rank, std::uint32_t incarnation);
  /// Takes a memfd of make_file into use, once; the caller may close it then. Throws bad_input if it is none,
  /// is of another version, or has been used.
  static std::unique_ptr<event_segment> of_file(int file);
  event_segment(const event_segment&) = delete;
  event_segment& operator=(const event_segment&) = delete;

  /// A ring for the calling thread: one that was never used, or else that of the thread that ended first.
  /// Null if all are in use, which the segment counts. Thread-safe, as the others are.
  event_ring* claim(std::string_view thread_name);
  /// The ring's thread has ended or needs it no more. Its events stay until another thread gets the ring.
  void release(const event_ring& ring);
  /// The number of a name, which is cut after 60 bytes; 0 if there is no place. Equal names, equal numbers.
  std::uint16_t number_of(std::string_view name);

  /// Copies all that is held, while others record.
  process_events copy() const;
  /// The memory, as write_events writes it.
  std::span<const std::byte> bytes() const { return {memory_.get(), memory_.size_bytes()}; }
  event_segment_layout layout() const { return {memory_.get(), size_}; }

 private:
  event_segment(int file, const event_segment_size& size);

  event_segment_size size_;
  event_memory memory_;
  std::vector<event_ring> rings_;
  std::mutex mutex_;  ///< guards claims of rings, and names
  std::size_t num_used_ = 0;
  std::map<std::string, std::uint16_t, std::less<>> names_;
  std::vector<std::size_t> ended_;  ///< rings, in the order in which their threads ended
};

/// Copies what a segment holds, while others write to it. Whatever the memory contains, only what lies in it
/// is read.
process_events copy_layout(const event_segment_layout& segment);

/// The size of the segment in a memfd. Throws bad_input if it is none that can be mapped.
event_segment_size size_of_sealed(int file);

}  // namespace troupe::trace
