#pragma once
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace troupe::testing {

/// A control group in which there may be only so many processes and threads, as a container with
/// --pids-limit.
class pids_group {
 public:
  /// Null where none can be made: without the rights, or without the controller.
  static std::unique_ptr<pids_group> make(int limit) {
    for (const char* parent : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
      auto folder = std::filesystem::path(parent) / ("troupe-test-" + std::to_string(::getpid()));
      std::error_code refused;
      if (!std::filesystem::create_directory(folder, refused)) continue;
      std::unique_ptr<pids_group> made(new pids_group(folder));
      if (std::ofstream(made->file(), std::ios::in) << limit << std::flush) return made;
    }
    return nullptr;
  }
  pids_group(const pids_group&) = delete;
  pids_group& operator=(const pids_group&) = delete;
  /// Waits until the processes in it have ended, 10 s at most.
  ~pids_group() {
    for (int i = 0; i < 1000 && ::rmdir(folder_.c_str()) != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  std::filesystem::path file() const { return folder_ / "pids.max"; }
  /// A line for a shell that enters the group and becomes `command`.
  std::string within(const std::string& command) const {
    return "echo $$ > " + (folder_ / "cgroup.procs").string() + " && exec " + command;
  }

 private:
  explicit pids_group(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

}  // namespace troupe::testing
