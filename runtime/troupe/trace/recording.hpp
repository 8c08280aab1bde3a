#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "troupe/trace/event_segment.hpp"

namespace troupe::trace {

/// Where the threads of a process record.
struct recording_options {
  std::size_t events_per_thread = event_segment_size().events_per_ring;  ///< 0: nothing is recorded
  int file = -1;  ///< a memfd of event_segment::make_file that the launcher holds too; -1: memory of its own
  int rank = 0;
  std::uint32_t incarnation = 0;
  std::function<void(const std::string&)> on_problem = nullptr;  ///< called at most twice, on any thread
};

/// Begins the recording of this process, which ends with the process; a second call changes nothing. What
/// records are threads that nobody can hand a recorder to, the progress threads of groups and transports and
/// those of actors. So the segment is the process's own, and each thread finds its ring by itself. Returns
/// the segment; null: nothing is recorded.
event_segment* start_recording(const recording_options& options);
/// Null before start_recording, or if nothing is recorded.
event_segment* recording_segment();

/// Records an event of this thread, in a ring that it gets with its first one. Nothing happens before
/// start_recording, or if all rings are in use.
void emit(const trace_event& event);
/// The same for an event that happens at this moment; its times are not looked at.
void emit_now(trace_event event);
/// The number of a name in events of this process; 0 if nothing is recorded.
std::uint16_t name_number(std::string_view name);

/// While it lives, what this thread emits goes to the given ring.
class recording_to {
 public:
  explicit recording_to(event_ring& ring);
  ~recording_to();
  recording_to(const recording_to&) = delete;
  recording_to& operator=(const recording_to&) = delete;

 private:
  event_ring* before_;
};

}  // namespace troupe::trace
