#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "troupe/collective/shm/shared_heap.hpp"

namespace troupe {

/// Another process of this host, with which this one exchanges the descriptors of shared segments over a Unix
/// socket. What one side has sent is in the other side's socket, so the sender may be stopped by then. Never
/// blocks. Thread-safe.
class peer_process {
 public:
  /// socket: connected to the process, SOCK_SEQPACKET, non-blocking. process_fd: its pidfd.
  peer_process(std::uint64_t process, unique_fd socket, unique_fd process_fd)
      : process_(process), socket_(std::move(socket)), process_fd_(std::move(process_fd)) {}

  std::uint64_t process() const { return process_; }

  /// Sends a segment of this process, unless it has been sent. Does nothing if the peer has ended. Throws
  /// system_failure if the peer's socket is full.
  void send_segment(const shared_segment& own);
  /// Tells the peer that segments of this process do not exist any more, so that it unmaps them.
  void release_segments(const std::vector<std::uint64_t>& ids);
  /// The peer's segment `id`, mapped into this process; null if the peer has not sent it. Throws
  /// std::runtime_error if it cannot be mapped.
  std::shared_ptr<mapping> find_segment(std::uint64_t id);
  /// Receives what the peer has sent, so that the socket does not fill up.
  void receive_segments();

  int process_fd() const { return process_fd_.get(); }
  bool has_ended() const { return has_ended_; }
  void set_ended() { has_ended_ = true; }

 private:
  bool receive_one();
  void send_message(std::uint32_t kind, std::uint64_t id, std::uint64_t size_bytes, int fd);

  std::uint64_t process_;
  unique_fd socket_, process_fd_;
  std::atomic<bool> has_ended_ = false;
  std::mutex mutex_;  // guards the rest
  std::set<std::uint64_t> sent_;
  std::map<std::uint64_t, std::shared_ptr<mapping>> received_;
};

}  // namespace troupe
