#pragma once
#include <filesystem>
#include <vector>

#include "troupe/trace/process_events.hpp"

namespace troupe::trace {

/// Writes a Chrome/Perfetto trace (JSON) of several processes. Rank R is process "rank R" with pid R + 1,
/// with a thread per ring. A span is a complete event, one where begin == end an instant event; what it is
/// about is in its arguments. An arrow leads from each sent tensor to its arrival. An event that was begun
/// and not ended when the process was killed has no end. Times are microseconds of the steady clock, so that
/// the traces of all processes of a host align. A file of that name is replaced at once or not at all. Throws
/// bad_input where it is no regular file, std::runtime_error where it cannot be written.
void write_perfetto(const std::vector<process_events>& processes, const std::filesystem::path& file);

/// Joins traces of several processes into one. Throws bad_input naming a file that is no trace,
/// system_failure where reading or writing fails.
void merge_perfetto(const std::vector<std::filesystem::path>& traces, const std::filesystem::path& joined);

}  // namespace troupe::trace
