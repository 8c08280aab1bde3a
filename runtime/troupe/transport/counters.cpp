#include "troupe/transport/counters.hpp"

#include <algorithm>

namespace troupe::transport {
namespace {

/// Nothing else is told by a counter: no order is needed.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.fetch_add(more, std::memory_order_relaxed);
}

/// The two may be counted by other threads meanwhile.
std::uint64_t difference(std::uint64_t begun, std::uint64_t ended) { return begun - std::min(begun, ended); }

}  // namespace

void peer_counters::count_sent(const tensor& value) {
  add(tensors_sent, 1);
  add(tensor_bytes_sent, value.size_bytes());
}

void peer_counters::count_completed(const tensor& value) {
  add(tensors_completed, 1);
  add(tensor_bytes_completed, value.size_bytes());
}

void peer_counters::count_received(const tensor& value) {
  add(tensors_received, 1);
  add(tensor_bytes_received, value.size_bytes());
}

void peer_counters::count_sent_frame(std::uint64_t body_bytes) {
  ++frames_sent;
  frame_bytes_sent += body_bytes;
}

void peer_counters::count_received_frame(std::uint64_t body_bytes) {
  ++frames_received;
  frame_bytes_received += body_bytes;
}

peer_statistics peer_counters::read() const {
  peer_statistics now;
  now.frames_sent = frames_sent;
  now.frames_received = frames_received;
  now.frame_bytes_sent = frame_bytes_sent;
  now.frame_bytes_received = frame_bytes_received;
  now.frame_bytes_queued = frame_bytes_queued;
  now.tensors_sent = tensors_sent;
  now.tensors_received = tensors_received;
  now.tensors_in_flight = difference(now.tensors_sent, tensors_completed);
  now.tensor_bytes_sent = tensor_bytes_sent;
  now.tensor_bytes_received = tensor_bytes_received;
  now.tensor_bytes_in_flight = difference(now.tensor_bytes_sent, tensor_bytes_completed);
  return now;
}

peer_counters& transport_counters::with(int rank) {
  std::lock_guard lock(mutex_);
  return peers_[rank];
}

transport_statistics transport_counters::read() const {
  transport_statistics now;
  now.tensor_bytes_copied = tensor_bytes_copied;
  now.tensor_bytes_shared = tensor_bytes_shared;
  now.stale_frames = stale_frames;
  now.bad_frames = bad_frames;
  now.ended_generation = ended_generation;
  std::lock_guard lock(mutex_);
  for (const auto& [rank, counters] : peers_) {
    const auto& peer = now.peers[rank] = counters.read();
    now.control_frames_sent += peer.frames_sent;
    now.control_frames_received += peer.frames_received;
    now.tensors_sent += peer.tensors_sent;
    now.tensors_received += peer.tensors_received;
    now.tensor_bytes_sent += peer.tensor_bytes_sent;
    now.tensor_bytes_received += peer.tensor_bytes_received;
  }
  return now;
}

}  // namespace troupe::transport
