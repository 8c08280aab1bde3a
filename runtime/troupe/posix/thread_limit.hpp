#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// The limits of how many processes and threads there may be; none: unlimited, or unknown.
struct thread_limits {
  std::optional<std::uint64_t> of_user;           ///< ulimit -u
  std::optional<std::uint64_t> of_control_group;  ///< pids.max
  std::filesystem::path control_group_file;       ///< that says so
  /// At least this many threads can be started before one of these limits or the system's is reached; none:
  /// not known. The user's threads are taken to be all of the system.
  std::optional<std::uint64_t> left;
};

/// Of this process. The arguments are for tests.
thread_limits read_thread_limits(const std::filesystem::path& proc = "/proc",
                                 const std::filesystem::path& control_groups = "/sys/fs/cgroup");
/// "the user's limit of processes and threads is 6 (ulimit -u); ... Raise it, or ..."
std::string describe(const thread_limits& limits);

/// How many threads this process can start now, at most `wanted`: it starts them, and they end at once.
int count_startable_threads(int wanted);
/// Throws std::runtime_error, naming the limits, if this process cannot start that many threads now, which it
/// tries where a limit is near. Libraries crash or hang when a thread is refused to them. `who` begins the
/// message: "this process".
void require_threads(int number, const std::string& who);

}  // namespace troupe
