#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "troupe/files/snapshot_error.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::files {

/// Processes of another job write to the folder.
class folder_in_use : public snapshot_error {
 public:
  using snapshot_error::snapshot_error;
};

/// begins: the job's first process, which no process of another job may be beside. joins: any later one.
enum class lock_role : std::uint8_t { begins, joins };

/// Every process of a job that writes snapshots to a folder holds a shared lock (flock) of FOLDER/job.lock,
/// so that no second job begins there. The system gives it up when the process ends, however it ends.
class folder_lock {
 public:
  /// `owner`: says who holds it, for the message to others. Waits a few seconds for processes that are
  /// ending. Throws folder_in_use, naming the owner, and snapshot_error if the file cannot be opened. Whoever
  /// may write to the folder may lock it and read the owner, and no other user.
  folder_lock(const std::filesystem::path& folder, lock_role role, const std::string& owner);

  /// False: the file system has no locks, so that another job would not be noticed.
  bool is_held() const { return is_held_; }

 private:
  posix::unique_fd file_;
  bool is_held_ = false;
};

}  // namespace troupe::files
