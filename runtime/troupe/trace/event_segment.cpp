#include "troupe/trace/event_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/memory_file.hpp"

namespace troupe::trace {
namespace {

constexpr std::size_t header_bytes = 4096;

std::size_t ring_bytes(const event_segment_size& size) {
  return sizeof(event_ring_header) + std::size_t{size.events_per_ring} * sizeof(event_slot);
}

void begin_segment(const event_segment_layout& made, int rank, std::uint32_t incarnation) {
  auto& head = made.head();
  head.version = event_segment_layout::version;
  head.num_rings = made.size().num_rings;
  head.events_per_ring = made.size().events_per_ring;
  head.num_names = made.size().num_names;
  head.rank = rank;
  head.incarnation = incarnation;
  head.magic = event_segment_layout::magic;
}

}  // namespace

std::size_t event_segment_layout::size_bytes(const event_segment_size& size) {
  return header_bytes + size.num_names * sizeof(name) + size.num_rings * ring_bytes(size);
}

event_segment_layout::name& event_segment_layout::name_at(std::size_t index) const {
  return *reinterpret_cast<name*>(memory_ + header_bytes + index * sizeof(name));
}

event_ring_header& event_segment_layout::ring_at(std::size_t index) const {
  auto offset = header_bytes + size_.num_names * sizeof(name) + index * ring_bytes(size_);
  return *reinterpret_cast<event_ring_header*>(memory_ + offset);
}

event_slot* event_segment_layout::slots_at(std::size_t index) const {
  return reinterpret_cast<event_slot*>(reinterpret_cast<std::byte*>(&ring_at(index)) +
                                       sizeof(event_ring_header));
}

event_memory::event_memory(std::size_t size_bytes, int file, bool is_read_only) : size_bytes_(size_bytes) {
  auto flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  auto* memory =
      ::mmap(nullptr, size_bytes, is_read_only ? PROT_READ : PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED) throw system_failure("map memory for events", errno);
  ::madvise(memory, size_bytes, MADV_DONTDUMP);
  memory_ = static_cast<std::byte*>(memory);
}

event_memory::~event_memory() { ::munmap(memory_, size_bytes_); }

event_segment::event_segment(int file, const event_segment_size& size)
    : size_(size), memory_(event_segment_layout::size_bytes(size), file) {
  rings_.reserve(size.num_rings);
  for (std::size_t i = 0; i < size.num_rings; ++i)
    rings_.emplace_back(layout().ring_at(i), layout().slots_at(i), size.events_per_ring);
}

event_segment::event_segment(const event_segment_size& size, int rank, std::uint32_t incarnation)
    : event_segment(-1, size) {
  if (size.events_per_ring == 0 || size.num_rings == 0)
    throw_invalid("event_segment", "at least one ring of at least one event",
                  std::to_string(size.num_rings) + " of " + std::to_string(size.events_per_ring));
  begin_segment(layout(), rank, incarnation);
  layout().head().pid = static_cast<std::uint32_t>(::getpid());
}

posix::unique_fd event_segment::make_file(const event_segment_size& size, int rank,
                                          std::uint32_t incarnation) {
  auto bytes = event_segment_layout::size_bytes(size);
  auto made = posix::make_memory_file("troupe-events", "make memory for events");
  check_posix(::ftruncate(made.get(), static_cast<off_t>(bytes)), "size memory for events");
  check_posix(::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              "seal memory for events");
  event_memory memory(bytes, made.get());
  begin_segment({memory.get(), size}, rank, incarnation);
  return made;
}

std::unique_ptr<event_segment> event_segment::of_file(int file) {
  auto size = size_of_sealed(file);
  auto made = std::unique_ptr<event_segment>(new event_segment(file, size));
  std::uint32_t unused = 0;
  if (!made->layout().head().pid.compare_exchange_strong(unused, static_cast<std::uint32_t>(::getpid())))
    throw bad_input("the memory for events is that of process " + std::to_string(unused));
  return made;
}

event_ring* event_segment::claim(std::string_view thread_name) {
  auto name = number_of(thread_name);
  std::lock_guard lock(mutex_);
  std::size_t index = num_used_;
  if (num_used_ < size_.num_rings) {
    ++num_used_;
  } else if (!ended_.empty()) {
    index = ended_.front();
    ended_.erase(ended_.begin());
  } else {
    layout().head().num_unrecorded.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  auto& header = layout().ring_at(index);
  header.owner.fetch_add(1);
  header.name = name;
  header.thread = static_cast<std::uint32_t>(::gettid());
  header.first = header.count.load();
  header.state = event_ring_header::use::running;
  header.owner.fetch_add(1);
  return &rings_[index];
}

void event_segment::release(const event_ring& ring) {
  auto index = static_cast<std::size_t>(&ring - rings_.data());
  std::lock_guard lock(mutex_);
  layout().ring_at(index).state = event_ring_header::use::ended;
  ended_.push_back(index);
}

std::uint16_t event_segment::number_of(std::string_view name) {
  using entry = event_segment_layout::name;
  name = name.substr(0, entry::most_bytes);
  if (name.empty()) return 0;
  std::lock_guard lock(mutex_);
  if (auto known = names_.find(name); known != names_.end()) return known->second;
  auto index = names_.size();
  if (index >= size_.num_names || index >= std::numeric_limits<std::uint16_t>::max()) {
    layout().head().num_unnamed.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  auto& made = layout().name_at(index);
  std::memcpy(made.text, name.data(), name.size());
  made.length.store(static_cast<std::uint32_t>(name.size()) + 1, std::memory_order_release);
  return names_[std::string(name)] = static_cast<std::uint16_t>(index + 1);
}

process_events event_segment::copy() const { return copy_layout(layout()); }

}  // namespace troupe::trace
