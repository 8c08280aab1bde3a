#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What happened. Names in Perfetto: "F", "B", "I", "W", "R", "apply", "copy_state", ...
enum class trace_kind : std::uint8_t {
  forward,
  backward,
  input_gradient,
  weight_gradient,
  reduce_gradient,
  apply,
  copy_state,
  write_part,
  commit,
  quiesce,
  restore,
  fence,
  view,
  step
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

/// The newest `capacity` events of one thread. One writer; a reader may copy at any time and gets whole
/// events only. Recording allocates nothing and takes no lock.
class event_ring {
 public:
  /// Throws std::invalid_argument if `capacity` is 0.
  event_ring(std::string thread_name, std::size_t capacity);
  ~event_ring();
  event_ring(const event_ring&) = delete;
  event_ring& operator=(const event_ring&) = delete;

  /// To be called by one thread only.
  void record(const trace_event& event);
  /// The newest events without a gap, oldest first: all that are held, less those overwritten meanwhile.
  /// Thread-safe against record.
  std::vector<trace_event> snapshot() const;
  const std::string& thread_name() const { return thread_name_; }
  /// How many events were recorded, held or not.
  std::uint64_t num_recorded() const;

 private:
  struct slot;
  std::string thread_name_;
  std::size_t capacity_;
  std::unique_ptr<slot[]> slots_;
  std::atomic<std::uint64_t> count_ = 0;
};

/// All rings of one process.
class trace_recorder {
 public:
  explicit trace_recorder(int rank, std::size_t events_per_thread = 1 << 14);
  /// A new ring, owned by the recorder, for the thread that asks. Thread-safe.
  event_ring& ring(std::string thread_name);
  /// Writes a Chrome/Perfetto trace (JSON): process "rank R" with pid R + 1, a thread per ring, a complete
  /// event per span and an instant event where begin == end, with generation, step, stage and microbatch in
  /// its arguments. Times are microseconds of the steady clock, so that the traces of all processes of a host
  /// align. Thread-safe, also against recording. A file of that name is replaced at once or not at all.
  /// Throws system_failure.
  void write_perfetto(const std::filesystem::path& file) const;

 private:
  int rank_;
  std::size_t events_per_thread_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<event_ring>> rings_;
};

/// Joins traces of several processes into one. Throws bad_input naming a file that is no trace,
/// system_failure where reading or writing fails.
void merge_perfetto(const std::vector<std::filesystem::path>& traces, const std::filesystem::path& joined);

/// std::chrono::steady_clock, in nanoseconds.
std::int64_t now_ns();

}  // namespace troupe
