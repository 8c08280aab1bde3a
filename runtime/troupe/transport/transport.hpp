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

namespace troupe {

/// What a tensor on the data plane is.
enum class tensor_role : std::uint8_t {
  activation = 1,
  gradient = 2,
  parameter = 3,
  snapshot_part = 4,
  share = 5,    ///< of a reduction
  gathered = 6  ///< for the program of the receiving process
};

/// Says what a tensor is and whom it is for. `stage` is the receiving stage for activations, gradients and
/// shares, the owning stage for parameters and snapshot parts. `microbatch` of a share is its place in the
/// order of all: reduction * number of stages + the stage it comes from; of a gathered tensor, its place in
/// the order of its call. `call` numbers the calls of the World (fit, evaluate, ...); of a snapshot part, its
/// jobs.
struct tensor_tag {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t call = 0;
  std::uint32_t stage = 0;
  std::uint32_t microbatch = 0;
  tensor_role role = tensor_role::activation;
  bool operator==(const tensor_tag&) const = default;
};

/// How others reach this node: opaque bytes, unlike those of any other process. Empty for a transport inside
/// one process.
struct node_address {
  std::vector<std::byte> control;
  std::vector<std::byte> data;
  bool operator==(const node_address&) const = default;
};

/// Receives what arrives. Called on the transport's progress thread, or on the sender's thread for a
/// message to itself: return soon, do not throw, do not call back into the transport except to send. The
/// transport holds no lock meanwhile.
class transport_events {
 public:
  virtual ~transport_events() = default;
  /// `body` is valid during the call only. Control messages of one sender arrive in order.
  virtual void on_control(int from_rank, std::uint64_t generation, std::span<const std::byte> body) = 0;
  virtual void on_tensor(int from_rank, const tensor_tag& tag, tensor value) = 0;
  /// The control connection to `rank` broke, or it sent a bad frame, or tensors cannot be sent to it or
  /// fetched from it although the generation goes on. Once per connection.
  virtual void on_peer_error(int rank, const std::string& cause) = 0;
  /// A tensor of the current generation came and could not be taken in, so that whoever waits for it would
  /// wait for ever. `rank` is -1 if its head does not show who sent it: then it may be a stranger's.
  virtual void on_tensor_lost(int rank, std::uint64_t generation, const std::string& cause) {
    static_cast<void>(rank), static_cast<void>(generation), static_cast<void>(cause);
  }
};

/// A thread that waits for tensors and receives them itself meanwhile, so that nobody has to wake it up.
class tensor_waiter {
 public:
  virtual ~tensor_waiter() = default;
  /// Takes a tensor, on the waiting thread; false: it is not meant for it, goes to
  /// transport_events::on_tensor and is untouched. May send. The transport holds no lock meanwhile.
  virtual bool take(int from_rank, const tensor_tag& tag, tensor& value) = 0;
  /// Whether it still waits. Looked at often, and after wake_receiver.
  virtual bool waits() const = 0;
};

/// Counters since construction.
struct transport_statistics {
  std::uint64_t control_frames_sent = 0, control_frames_received = 0;
  std::uint64_t tensors_sent = 0, tensors_received = 0;
  std::uint64_t tensor_bytes_sent = 0, tensor_bytes_received = 0;
  /// Copied by this process, for tensors too small for UCX to put them where they belong. What is larger is
  /// read out of the sender's tensor into the receiver's, or sent from there.
  std::uint64_t tensor_bytes_copied = 0;
  std::uint64_t stale_frames = 0;  ///< of an older generation: dropped
  std::uint64_t bad_frames = 0;    ///< failed the length, version or authentication check: dropped
};

/// Moves control messages and tensors between the nodes of one job. Thread-safe.
///
/// Two planes (ARCHITECTURE 3): control lives as long as the process and notices broken peers; data lives for
/// one generation. The life of a generation g > 0:
///   1. begin_generation(g): stops the data plane of the generation before; sends to it become no-ops,
///      the tensors in flight stay alive. Returns this node's address, its data part new.
///      A node that joins does not know g yet and says 0.
///   2. connect(g, peers): every member has done 1. Tensors that were in flight are released, sends work.
/// A tensor may arrive as soon as its sender has done 2; it is delivered with its generation in the tag.
class transport {
 public:
  virtual ~transport() = default;
  virtual int rank() const = 0;
  virtual node_address begin_generation(std::uint64_t generation) = 0;
  /// `peers` are all members by rank, this node among them. A peer whose control address is unchanged keeps
  /// its control connection.
  virtual void connect(std::uint64_t generation, const std::map<int, node_address>& peers) = 0;
  /// Queues a control message and returns. A rank that is not connected: dropped (a lost peer is reported by
  /// on_peer_error or by the membership, not here).
  virtual void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) = 0;
  /// Sends without copying where it can: the elements must not change until the receiver has them, which the
  /// sender arranges by giving the tensor away. Never blocks. A tag of another generation than the
  /// current one is dropped and counted.
  virtual void send_tensor(int to_rank, const tensor_tag& tag, tensor value) = 0;
  /// Receives on the calling thread as long as `waiter` waits: polls for `spin` after the last event, then
  /// sleeps. False, at once: nothing comes from other processes, or another waiter receives; tensors come
  /// through transport_events. Afterwards it is still this waiter's turn: it must come back soon, or
  virtual bool receive_for(tensor_waiter&, std::chrono::nanoseconds) { return false; }
  /// say that it is busy with something else. Of no effect if it is not this waiter's turn.
  virtual void stop_receiving(const tensor_waiter&) {}
  /// To be called after something changed that some waiter waits for. Costs next to nothing while none
  /// sleeps.
  virtual void wake_receiver() {}
  virtual transport_statistics statistics() const = 0;
};

}  // namespace troupe
