#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "troupe/transport/transport.hpp"

namespace troupe::transport {

/// peer_statistics that any thread may add to.
struct peer_counters {
  std::atomic<std::uint64_t> frames_sent = 0, frames_received = 0;
  std::atomic<std::uint64_t> frame_bytes_sent = 0, frame_bytes_received = 0, frame_bytes_queued = 0;
  std::atomic<std::uint64_t> tensors_sent = 0, tensors_completed = 0, tensors_received = 0;
  std::atomic<std::uint64_t> tensor_bytes_sent = 0, tensor_bytes_completed = 0, tensor_bytes_received = 0;

  /// It is in flight until it is counted as completed.
  void count_sent(const tensor& value);
  void count_completed(const tensor& value);
  void count_received(const tensor& value);
  void count_sent_frame(std::uint64_t body_bytes);
  void count_received_frame(std::uint64_t body_bytes);
  peer_statistics read() const;
};

/// transport_statistics that any thread may add to.
class transport_counters {
 public:
  std::atomic<std::uint64_t> tensor_bytes_copied = 0, tensor_bytes_shared = 0;
  std::atomic<std::uint64_t> stale_frames = 0, bad_frames = 0, ended_generation = 0;

  /// Those with a rank. They stay where they are, and there are as many as ranks that anything was sent to or
  /// came from.
  peer_counters& with(int rank);
  transport_statistics read() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, peer_counters> peers_;
};

}  // namespace troupe::transport
