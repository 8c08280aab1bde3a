#pragma once
#include <atomic>

#include "troupe/transport/transport.hpp"

namespace troupe {

/// transport_statistics that any thread may add to.
struct transport_counters {
  std::atomic<std::uint64_t> control_frames_sent = 0, control_frames_received = 0;
  std::atomic<std::uint64_t> tensors_sent = 0, tensors_received = 0;
  std::atomic<std::uint64_t> tensor_bytes_sent = 0, tensor_bytes_received = 0, tensor_bytes_copied = 0;
  std::atomic<std::uint64_t> stale_frames = 0, bad_frames = 0, ended_generation = 0;

  void count_sent(const tensor& value) {
    ++tensors_sent;
    tensor_bytes_sent += value.size_bytes();
  }
  void count_received(const tensor& value) {
    ++tensors_received;
    tensor_bytes_received += value.size_bytes();
  }
  transport_statistics read() const {
    return {control_frames_sent,   control_frames_received, tensors_sent, tensors_received, tensor_bytes_sent,
            tensor_bytes_received, tensor_bytes_copied,     stale_frames, bad_frames,       ended_generation};
  }
};

}  // namespace troupe
