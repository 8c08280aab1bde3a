#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "troupe/collective/ucx/shared_segment.hpp"

namespace troupe {

/// Another process of this host, which gives this one its segments and is given this one's. What one side has
/// given is there for the other without any help of the giver, who may be stopped by then. Never blocks.
/// Thread-safe.
class host_peer {
 public:
  /// socket: connected to it, of packets, non-blocking. process_fd: a descriptor of the process itself.
  host_peer(std::uint64_t process, unique_fd socket, unique_fd process_fd)
      : process_(process), socket_(std::move(socket)), process_fd_(std::move(process_fd)) {}

  std::uint64_t process() const { return process_; }

  /// Hands it over unless that has been done. Nothing happens if the process has ended. Throws
  /// system_failure.
  void give(const shared_segment& own);
  /// Own segments that ended: the peer need not keep them.
  void forget(const std::vector<std::uint64_t>& ended);
  /// The peer's segment `id` in this process; null if it has not been given. Throws std::runtime_error if it
  /// cannot be mapped.
  std::shared_ptr<mapping> find(std::uint64_t id);
  /// Takes what it has given meanwhile, so that the socket does not fill up.
  void take_given();

  int process_fd() const { return process_fd_.get(); }
  bool has_ended() const { return has_ended_; }
  void set_ended() { has_ended_ = true; }

 private:
  bool take_one();
  void post(std::uint32_t kind, std::uint64_t id, std::uint64_t size_bytes, int fd);

  std::uint64_t process_;
  unique_fd socket_, process_fd_;
  std::atomic<bool> has_ended_ = false;
  std::mutex mutex_;  // guards the rest
  std::set<std::uint64_t> given_;
  std::map<std::uint64_t, std::shared_ptr<mapping>> received_;
};

}  // namespace troupe
