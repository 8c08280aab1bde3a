#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What happened. Names in Perfetto: "F", "B", "I", "W", "apply", "copy_state", "wait", ...
enum class trace_kind : std::uint8_t {
  forward, backward, input_gradient, weight_gradient, apply, copy_state, write_part, commit, quiesce, restore, fence, view, step
};
std::string_view to_string(trace_kind kind);

/// One span (or instant, when begin == end) on one thread. Times are std::chrono::steady_clock nanoseconds,
/// which all processes of one host share.
struct trace_event {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::int32_t stage = -1;
  std::int32_t microbatch = -1;
  trace_kind kind = trace_kind::forward;
};

/// The newest `capacity` events of one thread. One writer; a reader may copy at any time and gets whole events only.
/// Recording allocates nothing and takes no lock.
class event_ring {
 public:
  event_ring(std::string thread_name, std::size_t capacity);
  void record(const trace_event& event);
  /// The events still held, oldest first. Thread-safe against record.
  std::vector<trace_event> snapshot() const;
  const std::string& thread_name() const { return thread_name_; }
  std::uint64_t num_recorded() const;

 private:
  struct slot;
  std::string thread_name_;
  std::size_t capacity_;
  std::shared_ptr<slot[]> slots_;
  std::shared_ptr<std::uint64_t> count_;
};

/// All rings of one process.
class trace_recorder {
 public:
  explicit trace_recorder(int rank, std::size_t events_per_thread = 1 << 14);
  /// A new ring, owned by the recorder, for the thread that asks.
  event_ring& ring(std::string thread_name);
  /// Writes a Chrome/Perfetto trace (JSON), process = rank, thread = ring. Throws system_failure.
  void write_perfetto(const std::filesystem::path& file) const;

 private:
  int rank_;
  std::size_t events_per_thread_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<event_ring>> rings_;
};

std::int64_t now_ns();

}  // namespace troupe
