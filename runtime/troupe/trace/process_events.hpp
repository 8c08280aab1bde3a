#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "troupe/trace/trace_event.hpp"

namespace troupe::trace {

/// The events of one thread.
struct thread_events {
  std::string name;
  std::uint32_t thread = 0;              ///< its number in the kernel
  bool has_ended = false;                ///< the thread, before its process did
  std::uint64_t num_recorded = 0;        ///< all that the thread recorded, also those that were overwritten
  std::vector<trace_event> events = {};  ///< the newest, oldest first
};

/// A copy of what one process has recorded (event_segment).
struct process_events {
  int rank = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t pid = 0;                ///< 0: no process has used the segment
  std::uint64_t num_unrecorded = 0;     ///< threads that found all rings in use
  std::uint64_t num_unnamed = 0;        ///< names for which there was no place
  std::vector<std::string> names = {};  ///< [trace_event::name - 1]
  std::vector<thread_events> threads = {};

  /// Empty: none.
  std::string name_of(const trace_event& event) const;
};

/// What a process has recorded in a memfd of event_segment::make_file, alive or not, or what write_events has
/// written to a file. Whatever the bytes are, nothing but these is thrown: bad_input if the file is neither
/// or is of another version (with both numbers), system_failure.
process_events read_events(int file);
process_events read_events(const std::filesystem::path& file);

/// Writes the newest `events_per_thread` events of each thread to a file, which is replaced at once or not at
/// all. Throws system_failure.
void write_events(const process_events& written, const std::filesystem::path& file,
                  std::size_t events_per_thread = 4096);

/// "F stage 1 microbatch 3 step 7 generation 2", "collective begun all_reduce dp sequence 4 4096 bytes"
std::string describe(const process_events& process, const trace_event& event);

}  // namespace troupe::trace
