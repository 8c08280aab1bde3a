#pragma once
#include <spdlog/logger.h>
#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::actors::inspector {

struct audit_options {
  /// Lines are appended to this file, which is made with mode 0600; empty: they go to the log.
  std::filesystem::path file;
  /// The file's folder is made with these permissions if it is missing; 0: it must be there.
  mode_t folder_mode = 0;
};

/// Where an inspector writes down which commands it was given. Thread-safe.
class audit_log {
 public:
  /// Throws bad_input, with what to do, if the file cannot be written.
  audit_log(audit_options options, std::shared_ptr<spdlog::logger> log);
  /// Writes what is left.
  ~audit_log();
  audit_log(const audit_log&) = delete;
  audit_log& operator=(const audit_log&) = delete;

  /// Appends a line. False: it is not written, which is said in the log.
  bool append(const std::string& line);
  /// Appends it on a thread of its own, for callers that must not wait for a disk.
  void append_later(std::string line);
  /// The newest lines, at most some 256 KiB of them; empty if they go to the log.
  std::string newest() const;

 private:
  void make_folder() const;
  void open();
  bool write(const std::string& line);
  bool write_to_log(const std::string& line);
  void write_later_ones();

  const audit_options options_;
  const std::shared_ptr<spdlog::logger> log_;
  std::mutex writing_;
  posix::unique_fd fd_;   ///< guarded by writing_; none: lines go to the log
  bool is_torn_ = false;  ///< guarded by writing_: the file does not end with a line end

  std::mutex mutex_;  // guards what follows
  std::condition_variable arrived_;
  std::deque<std::string> later_;
  bool is_ending_ = false;
  std::thread writer_;
};

}  // namespace troupe::actors::inspector
