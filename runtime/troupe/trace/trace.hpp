#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/trace/event_ring.hpp"
#include "troupe/trace/trace_event.hpp"

namespace troupe::trace {

class event_segment;

/// The rings of one process, in the segment of its process.
class trace_recorder {
 public:
  /// In a segment of its own.
  explicit trace_recorder(int rank, std::size_t events_per_thread = 1 << 14);
  /// In the segment of the process, from now on; null: nothing is recorded.
  trace_recorder(int rank, event_segment* of_process);
  /// Gives the rings back.
  ~trace_recorder();
  trace_recorder(const trace_recorder&) = delete;
  trace_recorder& operator=(const trace_recorder&) = delete;

  /// A new ring, owned by the recorder, for the thread that asks; one that keeps nothing if all are in use.
  /// Thread-safe.
  event_ring& ring(const std::string& thread_name);
  /// Writes a Chrome/Perfetto trace (perfetto.hpp) of what the process has recorded since the recorder was
  /// made. Thread-safe, also against recording.
  void write_perfetto(const std::filesystem::path& file) const;

 private:
  int rank_;
  std::int64_t since_ns_;
  std::unique_ptr<event_segment> own_;
  event_segment* segment_;
  std::mutex mutex_;
  std::vector<event_ring*> rings_;
  event_ring keeps_nothing_;
};

}  // namespace troupe::trace
