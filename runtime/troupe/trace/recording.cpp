#include "troupe/trace/recording.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace troupe::trace {
namespace {

/// Of the process; never destroyed, since threads may record until it ends.
struct process_recording {
  std::atomic<event_segment*> segment = nullptr;
  std::mutex mutex;
  bool was_started = false, stops_in_children = false;
  std::function<void(const std::string&)> on_problem;
  std::atomic<bool> has_told_dropped = false;
};

process_recording& recording() {
  static auto* made = new process_recording;
  return *made;
}

/// Where this thread's events go; null: nowhere, or it has emitted none yet.
constinit thread_local event_ring* current = nullptr;
/// The thread has looked for a ring.
constinit thread_local bool has_looked = false;

/// A thread's own ring, given back when the thread ends.
struct own_ring {
  event_segment* segment = nullptr;
  event_ring* ring = nullptr;
  ~own_ring() {
    if (current == ring) current = nullptr;
    has_looked = true;
    if (ring) segment->release(*ring);
  }
};
thread_local own_ring own;

/// A child made by fork shares the memory and must not record there.
void stop_in_child() {
  recording().segment = nullptr;
  recording().was_started = false;
  own.ring = nullptr;
  current = nullptr;
  has_looked = false;
}

std::string name_of_thread() {
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return ::gettid() == ::getpid() ? "main" : std::string(name) + " " + std::to_string(::gettid());
}

event_ring* find_ring() {
  auto* segment = recording().segment.load(std::memory_order_acquire);
  if (!segment) return nullptr;
  has_looked = true;
  own.segment = segment;
  own.ring = segment->claim(name_of_thread());
  if (!own.ring && !recording().has_told_dropped.exchange(true) && recording().on_problem)
    recording().on_problem("events of some threads are not recorded: more than " +
                           std::to_string(segment->layout().size().num_rings) +
                           " threads record at one time");
  return own.ring;
}

std::unique_ptr<event_segment> make_recording_segment(const recording_options& options) {
  try {
    if (options.file >= 0) return event_segment::of_file(options.file);
  } catch (const std::exception& problem) {
    if (options.on_problem)
      options.on_problem(
          std::string("events will be lost with this process, the launcher cannot keep them: ") +
          problem.what());
  }
  event_segment_size size;
  size.events_per_ring = static_cast<std::uint32_t>(options.events_per_thread);
  return std::make_unique<event_segment>(size, options.rank, options.incarnation);
}

}  // namespace

event_segment* start_recording(const recording_options& options) {
  auto& process = recording();
  std::lock_guard lock(process.mutex);
  if (std::exchange(process.was_started, true) || options.events_per_thread == 0) return process.segment;
  process.on_problem = options.on_problem;
  process.segment = make_recording_segment(options).release();
  if (!std::exchange(process.stops_in_children, true)) ::pthread_atfork(nullptr, nullptr, stop_in_child);
  return process.segment;
}

event_segment* recording_segment() { return recording().segment.load(std::memory_order_acquire); }

void emit(const trace_event& event) {
  if (!current && !has_looked) current = find_ring();
  if (current) current->record(event);
}

void emit_now(trace_event event) {
  event.begin_ns = event.end_ns = now_ns();
  emit(event);
}

std::uint16_t name_number(std::string_view name) {
  auto* segment = recording_segment();
  return segment ? segment->number_of(name) : std::uint16_t{0};
}

recording_to::recording_to(event_ring& ring) : before_(std::exchange(current, &ring)) {}

recording_to::~recording_to() { current = before_; }

}  // namespace troupe::trace
