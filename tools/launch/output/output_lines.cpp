#include "output/output_lines.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

/// The number of bytes that a writable pipe takes without blocking (PIPE_BUF).
constexpr std::size_t piece_bytes = 4096;
/// Longer lines are cut.
constexpr std::size_t max_line_bytes = 1 << 16;
/// Limit of reads in one call of read(), so that other descriptors are served.
constexpr int max_reads = 16;

}  // namespace

void line_sink::write_some() {
  auto size = std::min(piece_bytes, pending_.size());
  auto wrote = ::write(fd_, pending_.data(), size);
  if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (wrote < 0 && error_ == 0) error_ = errno;
  pending_.erase(0, wrote < 0 ? pending_.size() : static_cast<std::size_t>(wrote));
}

void line_sink::flush(int timeout_ms) {
  pollfd polled{fd_, POLLOUT, 0};
  while (wants_write() && ::poll(&polled, 1, timeout_ms) > 0) write_some();
  if (wants_write() && error_ == 0) error_ = ETIMEDOUT;
}

std::string token_filter::operator()(std::string_view bytes) {
  constexpr std::string_view begin = "#token=";
  auto is_of_token = [](char one) {
    return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
           one == '-' || one == '_' || one == '.' || one == '~';
  };
  std::string kept;
  for (char one : bytes) {
    if (num_matched_ == begin.size()) {
      if (is_of_token(one)) continue;
      num_matched_ = 0;
    }
    kept += one;
    // Only its first character is '#', so no other part of it can begin anew.
    num_matched_ = one == begin[num_matched_] ? num_matched_ + 1 : one == begin[0] ? 1 : 0;
    if (num_matched_ == begin.size()) kept += "(not logged)";
  }
  return kept;
}

void log_file::write(std::string_view all) {
  if (!fd_) return;
  auto text = without_token_(all);
  for (std::string_view bytes = text; !bytes.empty();) {
    auto wrote = ::write(fd_.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return warn_of(errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

void log_file::warn_of(int error) {
  if (std::exchange(has_warned_, true)) return;
  warn_("cannot write the log file " + path_.string() + ": " + std::strerror(error) +
        ". The job goes on, and lines are missing there; make room, or choose another --log-dir");
}

line_splitter::line_splitter(posix::unique_fd source, std::string prefix, line_sink& to, log_file log,
                             repeated_lines* said)
    : source_(std::move(source)), prefix_(std::move(prefix)), to_(&to), log_(std::move(log)), said_(said) {
  ::fcntl(source_.get(), F_SETFL, O_NONBLOCK);
}

void line_splitter::read() {
  std::array<char, 16384> chunk;
  for (int i = 0; i < max_reads && !at_end_; ++i) {
    auto got = ::read(source_.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    at_end_ = got <= 0;
    if (!at_end_) add({chunk.data(), static_cast<std::size_t>(got)});
  }
  if (at_end_ && !line_.empty()) add("\n");
}

/// A carriage return ends a line too: it ends a progress line that is drawn over itself.
void line_splitter::add(std::string_view bytes) {
  if (!at_end_) log_.write(bytes);
  for (char byte : bytes) {
    bool ends = byte == '\n' || byte == '\r';
    if (byte == '\r' && line_.empty()) continue;
    line_ += byte;
    if (!ends && line_.size() < max_line_bytes) continue;
    if (!said_ || !said_->is_repeated(line_)) to_->add(prefix_ + line_ + (ends ? "" : "\n"));
    line_.clear();
  }
}

}  // namespace troupe
