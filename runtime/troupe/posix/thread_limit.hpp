#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::posix {

/// The limits of how many processes and threads there may be, and of the memory that their stacks are
/// reserved in; none: unlimited, or unknown.
struct thread_limits {
  std::optional<std::uint64_t> of_user;           ///< ulimit -u: threads of this user
  std::optional<std::uint64_t> of_control_group;  ///< pids.max: threads of the control group
  std::filesystem::path control_group_file;       ///< the file with that limit
  std::optional<std::uint64_t> of_address_space;  ///< ulimit -v, in KiB: also h_vmem of Grid Engine
  std::optional<std::uint64_t> of_data;           ///< ulimit -d, in KiB
  /// At least this many threads can be started before one of these limits or the system's is reached; none:
  /// not known, as where memory is limited. The user's threads are taken to be all of the system.
  std::optional<std::uint64_t> left;
};

/// Of this process. The arguments are for tests.
thread_limits read_thread_limits(const std::filesystem::path& proc = "/proc",
                                 const std::filesystem::path& control_groups = "/sys/fs/cgroup");
/// "the user's limit of processes and threads is 6 (ulimit -u); ... Raise it, or ..."
std::string describe(const thread_limits& limits);

/// How many threads this process can start now, at most `wanted`: it starts them, and they end at once. Where
/// memory is limited, with stacks of half as much again as threads get, for what they allocate.
int count_startable_threads(int wanted);
/// Where the address space is limited, lets malloc reserve none of it for each thread (64 MiB, of which
/// little is used). As MALLOC_ARENA_MAX=2 does.
void spare_address_space();
/// Throws std::runtime_error, naming the limits, if threads have too small stacks, or if this process cannot
/// start that many threads now, which it tries where a limit is near. Libraries crash or hang when a thread
/// is refused to them. `who` begins the message: "this process".
void require_threads(int number, const std::string& who);

}  // namespace troupe::posix
