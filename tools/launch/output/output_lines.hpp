#pragma once
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// Writes lines to a shared descriptor (a terminal, a pipe) without blocking, so that a slow reader does not
/// keep the launcher from watching its processes.
class line_sink {
 public:
  /// Does not own `fd`.
  explicit line_sink(int fd) : fd_(fd) {}
  line_sink(const line_sink&) = delete;
  line_sink& operator=(const line_sink&) = delete;
  ~line_sink() { flush(1000); }
  int fd() const { return fd_; }
  void add(std::string_view line) { pending_ += line; }
  bool wants_write() const { return !pending_.empty(); }
  /// Over 1 MiB is pending: stop reading from the processes.
  bool full() const { return pending_.size() > (1 << 20); }
  /// Writes one piece; call it when poll says that `fd` is writable. If that fails, pending lines are
  /// dropped; later ones are tried again.
  void write_some();
  /// Writes all pending bytes. Gives up after `timeout_ms` without progress.
  void flush(int timeout_ms);
  /// Why lines are missing: the errno of the first write that failed, ETIMEDOUT if flush() gave up; 0: none
  /// are.
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
  std::string pending_;
};

/// Leaves the inspector's token ("#token=...") out of a text that comes in pieces.
class token_filter {
 public:
  /// What of the next piece is to be kept.
  std::string operator()(std::string_view bytes);

 private:
  std::size_t num_matched_ = 0;  ///< characters of "#token=" that the text ends with
};

/// A file that takes all bytes of a stream, but for the inspector's token: a log is kept and passed on. One
/// that cannot be written is warned of once, and tried again with the bytes that come later.
class log_file {
 public:
  using warning = std::function<void(const std::string&)>;
  /// None: nothing is written.
  log_file() = default;
  log_file(posix::unique_fd fd, std::filesystem::path path, warning warn)
      : fd_(std::move(fd)), path_(std::move(path)), warn_(std::move(warn)) {}
  void write(std::string_view all);

 private:
  void warn_of(int error);

  token_filter without_token_;
  posix::unique_fd fd_;
  std::filesystem::path path_;
  warning warn_;
  bool has_warned_ = false;
};

/// Detects repeated lines among those that begin with a given text (a program's error message): when all
/// processes of a job end with the same error, it is shown once.
class repeated_lines {
 public:
  explicit repeated_lines(std::string beginning) : beginning_(std::move(beginning)) {}
  /// Whether `line` has the beginning and was seen before; remembers it.
  bool is_repeated(const std::string& line) {
    return line.starts_with(beginning_) && !said_.insert(line).second;
  }

 private:
  std::string beginning_;
  std::set<std::string> said_;
};

/// Cuts one stream of a process into lines, writes them to a sink with a prefix, and all bytes to a log file.
class line_splitter {
 public:
  /// `source` is read without blocking. Lines that `said` has seen before are only logged; null: no lines.
  line_splitter(posix::unique_fd source, std::string prefix, line_sink& to, log_file log,
                repeated_lines* said);
  int fd() const { return source_.get(); }
  bool at_end() const { return at_end_; }
  line_sink& sink() const { return *to_; }
  /// Reads the available bytes. At the end of the stream it completes an unfinished last line.
  void read();

 private:
  void add(std::string_view bytes);

  posix::unique_fd source_;
  std::string prefix_;
  line_sink* to_;
  log_file log_;
  repeated_lines* said_;
  std::string line_;
  bool at_end_ = false;
};

}  // namespace troupe
