#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::transport {

/// How others reach this process: opaque bytes, unlike those of any other process. Empty for a transport
/// inside one process.
struct process_address {
  std::vector<std::byte> control;
  std::vector<std::byte> data;
  bool operator==(const process_address&) const = default;
};

/// Callbacks for what arrives. Called on the transport's progress thread, or on the sender's thread for a
/// message to itself: return soon, do not throw, do not call back into the transport except to send. The
/// transport holds no lock meanwhile.
class transport_events {
 public:
  virtual ~transport_events() = default;
  /// `body` is valid during the call only. Control messages of one sender arrive in order.
  virtual void on_control(int from_rank, std::uint64_t generation, std::span<const std::byte> body) = 0;
  virtual void on_tensor(int from_rank, const tensor_tag& tag, tensor value) = 0;
  /// The control connection to `rank` broke, or it sent a bad frame, or tensors cannot be sent to it or
  /// fetched from it although the generation continues. Once per connection. `generation`: the connected one
  /// when that was noticed; in a later one the rank may be another process.
  virtual void on_peer_error(int rank, std::uint64_t generation, const std::string& cause) = 0;
  /// A tensor of the current generation arrived and could not be received (no memory, failed fetch), so its
  /// receiver would wait for ever. `rank` is -1 if the sender is unknown or not authenticated.
  virtual void on_tensor_lost(int rank, std::uint64_t generation, const std::string& cause) {
    static_cast<void>(rank), static_cast<void>(generation), static_cast<void>(cause);
  }
};

/// A thread that polls the transport while it waits for tensors, instead of being woken by the transport's
/// thread; see transport::receive_for.
class tensor_waiter {
 public:
  virtual ~tensor_waiter() = default;
  /// Takes an arrived tensor, on the waiting thread. False: the tensor has another receiver; `value` is
  /// untouched and goes to transport_events::on_tensor. May send. The transport holds no lock meanwhile.
  virtual bool take(int from_rank, const tensor_tag& tag, tensor& value) = 0;
  /// Whether the thread still waits. Called often, and after wake_receiver.
  virtual bool waits() const = 0;
};

/// What this process has exchanged with one rank, since construction; a process that replaces another of that
/// rank goes on with its counters. Its own rank is one of them.
struct peer_statistics {
  std::uint64_t frames_sent = 0, frames_received = 0;            ///< number of control messages
  std::uint64_t frame_bytes_sent = 0, frame_bytes_received = 0;  ///< bytes of their bodies
  std::uint64_t frame_bytes_queued = 0;  ///< that the socket has not taken yet, with their headers
  std::uint64_t tensors_sent = 0, tensors_received = 0;
  std::uint64_t tensor_bytes_sent = 0, tensor_bytes_received = 0;
  /// Of those that were sent: they wait for their turn, or UCX has not completed the sending yet.
  std::uint64_t tensors_in_flight = 0, tensor_bytes_in_flight = 0;
  bool operator==(const peer_statistics&) const = default;
};

/// Counters since construction.
struct transport_statistics {
  // with all ranks together
  std::uint64_t control_frames_sent = 0, control_frames_received = 0;
  std::uint64_t tensors_sent = 0, tensors_received = 0;
  std::uint64_t tensor_bytes_sent = 0, tensor_bytes_received = 0;
  /// Bytes that this process copied out of UCX's receive buffers (eager protocol). Larger tensors go directly
  /// from the sender's memory into the receiver's tensor (rendezvous protocol).
  std::uint64_t tensor_bytes_copied = 0;
  /// Of tensor_bytes_sent: in memory of this process that the receivers read in place.
  std::uint64_t tensor_bytes_shared = 0;
  std::uint64_t stale_frames = 0;  ///< of an older generation: dropped
  std::uint64_t bad_frames = 0;    ///< failed the length, version or authentication check: dropped
  /// Tensors that could not be sent or fetched because the peer was in a later generation already: dropped.
  std::uint64_t ended_generation = 0;
  std::map<int, peer_statistics> peers;  ///< by rank; those with which anything was exchanged
};

/// Moves control messages and tensors between the processes of one job. Thread-safe.
///
/// Two planes (docs/architecture.md, "Generations"): control lives as long as the process and notices broken
/// peers; data lives for one generation. The life of a generation g > 0:
///   1. begin_generation(g): stops the data plane of the generation before; sends to it become no-ops,
///      the tensors in flight stay alive. Returns this process's address, its data part new.
///      A process that joins does not know g yet and says 0.
///   2. connect(g, peers): every member has done 1. Tensors that were in flight are released, sends work.
/// A tensor may arrive as soon as its sender has done 2; it is delivered with its generation in the tag.
class transport {
 public:
  virtual ~transport() = default;
  virtual int rank() const = 0;
  virtual process_address begin_generation(std::uint64_t generation) = 0;
  /// `peers` are all members by rank, this process among them. A peer whose control address is unchanged
  /// keeps its control connection. Throws bad_input, with what to do, if the two have no way for tensors.
  virtual void connect(std::uint64_t generation, const std::map<int, process_address>& peers) = 0;
  /// Queues a control message and returns. A rank that is not connected: dropped (a lost peer is reported by
  /// on_peer_error or by the membership, not here).
  virtual void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) = 0;
  /// Sends without copying where it can: the elements must not change until the receiver has them, which the
  /// sender arranges by giving the tensor away. Never blocks. A tag of another generation than the
  /// current one is dropped and counted. Within this process the tensor may be in a GPU's memory, and stays
  /// there. Throws std::invalid_argument for one that is undefined, or in a GPU's memory for another process.
  virtual void send_tensor(int to_rank, const tensor_tag& tag, tensor value) = 0;
  /// Memory for tensors that go to other processes again and again, such as gradients. A process of this host
  /// that gets such a tensor, or a part of it, reads the elements where they are, instead of a copy. They
  /// must not be written before all receivers have read them, which they show by an answer, or connect() has
  /// begun a later generation. Receivers must not write them at all. Elements of any value. Ordinary memory,
  /// which is copied, if it is small, the transport has no other process, or the system has no descriptor or
  /// no memory to share: see transport_statistics::tensor_bytes_shared.
  virtual tensor allocate_shared(shape extents, dtype type) {
    return tensor::empty(std::move(extents), type);
  }
  /// Polls the data plane on the calling thread while `waiter` waits: busily for `spin` after the last event,
  /// then asleep on a descriptor. Arrived tensors go to `waiter`, the rest to transport_events. Returns true
  /// when the waiter no longer waits. Returns false at once if another waiter owns polling or the transport
  /// has no other process; tensors then arrive through transport_events.
  ///
  /// After true this waiter still owns polling: it must call receive_for again soon, or stop_receiving before
  /// it does something long. (The transport's thread takes over from an owner that stays away for 1 ms.)
  virtual bool receive_for(tensor_waiter&, std::chrono::nanoseconds) { return false; }
  /// Gives up ownership of polling to the transport's thread. No effect if `waiter` does not own it.
  virtual void stop_receiving(const tensor_waiter&) {}
  /// Wakes a thread that sleeps in receive_for, so that it checks tensor_waiter::waits again. Costs an atomic
  /// load if none sleeps.
  virtual void wake_receiver() {}
  virtual transport_statistics statistics() const = 0;
};

}  // namespace troupe::transport
