#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// Where the kernel counts the processes of a control group that it killed because memory ran out.
struct memory_kill_counter {
  std::filesystem::path events;  ///< memory.events, or memory.oom_control of version 1
  std::filesystem::path limit;   ///< memory.max, or memory.limit_in_bytes of version 1
};

/// Of the group that `proc_cgroup` names, under the mount point `root`. None: there is no such counter.
std::optional<memory_kill_counter> find_memory_kill_counter(
    const std::filesystem::path& proc_cgroup = "/proc/self/cgroup",
    const std::filesystem::path& root = "/sys/fs/cgroup");

/// Tells kills for lack of memory from other kills: a process only sees SIGKILL.
class memory_kills {
 public:
  explicit memory_kills(std::optional<memory_kill_counter> counter = find_memory_kill_counter());

  /// Why a process was killed, if the kernel has counted a kill that no earlier call was told of; else empty.
  std::string explain();

 private:
  std::optional<memory_kill_counter> counter_;
  std::uint64_t num_told_ = 0;
};

}  // namespace troupe
