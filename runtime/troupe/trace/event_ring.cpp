#include <algorithm>
#include <array>

#include "troupe/error/errors.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe {
namespace {

using event_words = std::array<std::uint64_t, 6>;

event_words pack(const trace_event& event) {
  auto place = (std::uint64_t{static_cast<std::uint32_t>(event.stage)} << 32) |
               static_cast<std::uint32_t>(event.microbatch);
  return {static_cast<std::uint64_t>(event.begin_ns),
          static_cast<std::uint64_t>(event.end_ns),
          event.generation,
          event.step,
          place,
          static_cast<std::uint64_t>(event.kind)};
}

trace_event unpack(const event_words& words) {
  return {.begin_ns = static_cast<std::int64_t>(words[0]),
          .end_ns = static_cast<std::int64_t>(words[1]),
          .generation = words[2],
          .step = words[3],
          .stage = static_cast<std::int32_t>(words[4] >> 32),
          .microbatch = static_cast<std::int32_t>(words[4] & 0xffffffffU),
          .kind = static_cast<trace_kind>(words[5])};
}

}  // namespace

/// A seqlock for event number n: its version is 2n + 1 while the event is being written and 2n + 2 once it is
/// whole.
///
/// The words are stored with release and loaded with acquire: a reader that sees one word of a later event
/// also sees at least that event's odd version when it looks at the version again, and drops what it copied.
/// On x86 these are plain moves. (Fences would do the same, but the thread sanitizer does not understand
/// them.)
struct alignas(64) event_ring::slot {
  std::atomic<std::uint64_t> version = 0;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<event_words>> words = {};

  void write(std::uint64_t number, const event_words& event) {
    version.store(2 * number + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < event.size(); ++i) words[i].store(event[i], std::memory_order_release);
    version.store(2 * number + 2, std::memory_order_release);
  }

  /// False if the slot does not hold the whole event of that number.
  bool read(std::uint64_t number, event_words& event) const {
    if (version.load(std::memory_order_acquire) != 2 * number + 2) return false;
    for (std::size_t i = 0; i < event.size(); ++i) event[i] = words[i].load(std::memory_order_acquire);
    return version.load(std::memory_order_relaxed) == 2 * number + 2;
  }
};

event_ring::event_ring(std::string thread_name, std::size_t capacity)
    : thread_name_(std::move(thread_name)), capacity_(capacity) {
  if (capacity == 0) throw_invalid("event_ring", "a capacity of at least 1", "0");
  slots_ = std::make_unique<slot[]>(capacity);
}

event_ring::~event_ring() = default;

void event_ring::record(const trace_event& event) {
  auto number = count_.load(std::memory_order_relaxed);
  slots_[number % capacity_].write(number, pack(event));
  count_.store(number + 1, std::memory_order_release);
}

std::vector<trace_event> event_ring::snapshot() const {
  auto end = num_recorded();
  std::vector<trace_event> events;
  events.reserve(std::min<std::uint64_t>(end, capacity_));
  event_words words;
  for (auto number = end > capacity_ ? end - capacity_ : 0; number < end; ++number) {
    if (slots_[number % capacity_].read(number, words))
      events.push_back(unpack(words));
    else
      events.clear();
  }
  return events;
}

std::uint64_t event_ring::num_recorded() const { return count_.load(std::memory_order_acquire); }

std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace troupe
