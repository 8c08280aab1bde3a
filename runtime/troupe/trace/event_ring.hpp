#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/trace/trace_event.hpp"

namespace troupe::trace {

/// One event in shared memory, a seqlock: for event number n its version is 2n + 1 while it is being written
/// and 2n + 2 once it is whole.
///
/// The words are stored with release and loaded with acquire. So a reader that sees one word of a later event
/// also sees at least that event's odd version when it looks at the version again, and drops what it copied.
/// On x86 these are plain moves. (Fences would do the same, but the thread sanitizer does not understand
/// them.)
struct alignas(64) event_slot {
  using words = std::array<std::uint64_t, 7>;
  std::atomic<std::uint64_t> version = 0;
  std::array<std::atomic<std::uint64_t>, 7> contents = {};

  void write(std::uint64_t number, const words& event);
  /// False if the slot does not hold the whole event of that number.
  bool read(std::uint64_t number, words& event) const;
};
static_assert(sizeof(event_slot) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

/// What precedes the slots of a ring in shared memory.
struct alignas(64) event_ring_header {
  enum class use : std::uint32_t { never, running, ended };
  std::atomic<use> state = use::never;
  std::atomic<std::uint32_t> name = 0;    ///< in the segment's table of names
  std::atomic<std::uint32_t> thread = 0;  ///< its number in the kernel
  /// Odd while a new thread takes the ring over.
  std::atomic<std::uint32_t> owner = 0;
  std::atomic<std::uint64_t> first = 0;  ///< the number of the first event of this thread
  std::atomic<std::uint64_t> count = 0;  ///< events so far, of all threads that had the ring
};

/// The newest `capacity` events of one thread. One writer; readers, also in other processes, may copy at any
/// time and get whole events only, whatever the writer was doing when it was killed. Recording allocates
/// nothing, takes no lock and makes no system call.
class event_ring {
 public:
  /// A ring that keeps nothing.
  event_ring() = default;
  /// With memory of its own. Throws std::invalid_argument if `capacity` is 0.
  event_ring(std::string thread_name, std::size_t capacity);
  /// In memory that outlives it: a header and `capacity` slots, zero or used before.
  event_ring(event_ring_header& header, event_slot* slots, std::size_t capacity)
      : header_(&header), slots_(slots), capacity_(capacity) {}

  /// To be called by one thread only.
  void record(const trace_event& event);
  /// The newest events of its thread without a gap, oldest first: all that are held, less those overwritten
  /// meanwhile. Thread-safe against record.
  std::vector<trace_event> snapshot() const;
  /// Of a ring with memory of its own.
  const std::string& thread_name() const { return thread_name_; }
  /// How many events its thread recorded, held or not.
  std::uint64_t num_recorded() const;

 private:
  struct own_memory;
  std::string thread_name_;
  std::shared_ptr<own_memory> memory_;
  event_ring_header* header_ = nullptr;
  event_slot* slots_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace troupe::trace
