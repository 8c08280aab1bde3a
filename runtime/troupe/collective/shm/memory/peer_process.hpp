#pragma once
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "troupe/collective/shm/memory/group_memory.hpp"
#include "troupe/shared_memory/shared_heap.hpp"

namespace troupe::collective {

constexpr std::size_t most_descriptors = 2;

/// Sends a packet with descriptors. Does not block. Returns what sendmsg does.
ssize_t send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors);

struct received_packet {
  ssize_t size_bytes = -1;  ///< what recvmsg returned: -1 is an error, 0 the end
  std::array<posix::unique_fd, most_descriptors>
      descriptors{};               ///< the file descriptors that came with the bytes
  bool lacks_descriptors = false;  ///< more came, but this process could not have them: EMFILE
};
/// Does not block.
received_packet receive_packet(int socket, std::span<std::byte> into);

/// Another process of this host, with which this one exchanges the descriptors of shared segments over a Unix
/// socket. What one side has sent is in the other side's socket, so the sender may be stopped by then. Never
/// blocks. Thread-safe.
class peer_process {
 public:
  /// socket: connected to the process, SOCK_SEQPACKET, non-blocking. process_fd: its pidfd. engine_event: its
  /// progress engine's. groups: its group_memory. Throws what attached_group_memory throws.
  peer_process(std::uint64_t process, posix::unique_fd socket, posix::unique_fd process_fd,
               posix::unique_fd engine_event, const posix::unique_fd& groups)
      : process_(process),
        socket_(std::move(socket)),
        process_fd_(std::move(process_fd)),
        engine_event_(std::move(engine_event)),
        groups_(groups.get()) {}

  std::uint64_t process() const { return process_; }

  /// Sends a segment of this process, unless it has been sent. Does nothing if the peer has ended. Throws
  /// system_failure if the peer's socket is full.
  void send_segment(const shared_memory::shared_segment& own);
  /// Tells the peer that segments of this process do not exist any more, so that it unmaps them.
  void release_segments(const std::vector<std::uint64_t>& ids);
  /// The peer's segment `id`, mapped into this process; null if the peer has not sent it. Throws
  /// std::runtime_error if it cannot be mapped.
  std::shared_ptr<shared_memory::mapping> find_segment(std::uint64_t id);
  /// Receives what the peer has sent, so that the socket does not fill up.
  void receive_segments();

  int process_fd() const { return process_fd_.get(); }
  /// Setting it wakes the process's progress engine.
  int engine_event() const { return engine_event_.get(); }
  const attached_group_memory& groups() const { return groups_; }
  bool has_ended() const { return has_ended_; }
  void set_ended() { has_ended_ = true; }

 private:
  bool receive_one();
  void send_message(std::uint32_t kind, std::uint64_t id, std::uint64_t size_bytes, int fd);

  std::uint64_t process_;
  posix::unique_fd socket_, process_fd_, engine_event_;
  attached_group_memory groups_;
  std::atomic<bool> has_ended_ = false;
  std::mutex mutex_;  // guards the rest
  std::set<std::uint64_t> sent_;
  std::map<std::uint64_t, std::shared_ptr<shared_memory::mapping>> received_;
};

}  // namespace troupe::collective
