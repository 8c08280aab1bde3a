#include "troupe/trace/event_ring.hpp"

#include <algorithm>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::trace {
namespace {

constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 48) - 1;

std::uint64_t join(std::uint32_t high, std::uint32_t low) { return (std::uint64_t{high} << 32) | low; }

event_slot::words pack(const trace_event& event) {
  auto what = (std::uint32_t{static_cast<std::uint8_t>(event.kind)} << 24) |
              (std::uint32_t{event.detail} << 16) | static_cast<std::uint16_t>(event.peer);
  return {static_cast<std::uint64_t>(event.begin_ns),
          static_cast<std::uint64_t>(event.end_ns),
          event.generation,
          event.step,
          join(static_cast<std::uint32_t>(event.stage), static_cast<std::uint32_t>(event.microbatch)),
          (std::min(event.bytes, most_bytes) << 16) | event.name,
          join(what, (std::uint32_t{event.port} << 16) | event.call)};
}

trace_event unpack(const event_slot::words& words) {
  auto what = static_cast<std::uint32_t>(words[6] >> 32);
  auto tensor = static_cast<std::uint32_t>(words[6]);
  return {.begin_ns = static_cast<std::int64_t>(words[0]),
          .end_ns = static_cast<std::int64_t>(words[1]),
          .generation = words[2],
          .step = words[3],
          .stage = static_cast<std::int32_t>(words[4] >> 32),
          .microbatch = static_cast<std::int32_t>(words[4] & 0xffffffffU),
          .kind = static_cast<trace_kind>(what >> 24),
          .detail = static_cast<std::uint8_t>(what >> 16),
          .peer = static_cast<std::int16_t>(what & 0xffffU),
          .port = static_cast<std::uint16_t>(tensor >> 16),
          .call = static_cast<std::uint16_t>(tensor & 0xffffU),
          .name = static_cast<std::uint16_t>(words[5] & 0xffffU),
          .bytes = words[5] >> 16};
}

}  // namespace

void event_slot::write(std::uint64_t number, const words& event) {
  version.store(2 * number + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < event.size(); ++i) contents[i].store(event[i], std::memory_order_release);
  version.store(2 * number + 2, std::memory_order_release);
}

bool event_slot::read(std::uint64_t number, words& event) const {
  if (version.load(std::memory_order_acquire) != 2 * number + 2) return false;
  for (std::size_t i = 0; i < event.size(); ++i) event[i] = contents[i].load(std::memory_order_acquire);
  return version.load(std::memory_order_relaxed) == 2 * number + 2;
}

struct event_ring::own_memory {
  event_ring_header header;
  std::unique_ptr<event_slot[]> slots;
};

event_ring::event_ring(std::string thread_name, std::size_t capacity)
    : thread_name_(std::move(thread_name)), capacity_(capacity) {
  if (capacity == 0) throw_invalid("event_ring", "a capacity of at least 1", "0");
  memory_ = std::make_shared<own_memory>();
  memory_->slots = std::make_unique<event_slot[]>(capacity);
  header_ = &memory_->header;
  slots_ = memory_->slots.get();
}

void event_ring::record(const trace_event& event) {
  if (!header_) return;
  auto number = header_->count.load(std::memory_order_relaxed);
  slots_[number % capacity_].write(number, pack(event));
  header_->count.store(number + 1, std::memory_order_release);
}

std::vector<trace_event> event_ring::snapshot() const {
  if (!header_) return {};
  auto end = header_->count.load(std::memory_order_acquire);
  auto number = header_->first.load(std::memory_order_relaxed);
  if (number > end) return {};  // no writer of ours leaves this
  if (end - number > capacity_) number = end - capacity_;
  std::vector<trace_event> events;
  events.reserve(end - number);
  event_slot::words words;
  for (; number < end; ++number) {
    if (slots_[number % capacity_].read(number, words))
      events.push_back(unpack(words));
    else
      events.clear();
  }
  return events;
}

std::uint64_t event_ring::num_recorded() const {
  if (!header_) return 0;
  return header_->count.load(std::memory_order_acquire) - header_->first.load(std::memory_order_relaxed);
}

}  // namespace troupe::trace
