#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "troupe/transport/data_plane.hpp"
#include "troupe/transport/generation_gate.hpp"
#include "troupe/transport/polled_mutex.hpp"
#include "troupe/transport/receiving_turn.hpp"
#include "troupe/transport/ucx_context.hpp"
#include "troupe/transport/wakeup.hpp"

namespace troupe {

/// The tensors between processes: a data plane for each generation, driven by a waiter whose turn it is or
/// else by the transport's thread. Thread-safe; no lock is held while a tensor is handed over, so receivers
/// may send and may take locks that they hold while sending.
class tensor_traffic {
 public:
  /// What it is made of outlives it. `thread` wakes the transport's thread.
  struct surroundings {
    plane_settings& settings;
    generation_gate& gate;
    transport_events& events;
    wakeup& thread;
    /// Called by whoever receives, when a peer sent what is not authentic.
    std::function<void(const peer_failure&)> distrust = nullptr;
  };
  /// Throws ucx_error.
  tensor_traffic(const std::string& transports, const std::string& interface, const surroundings& around);

  /// Ends the generation before and returns the address in the new one.
  std::vector<std::byte> begin_generation(std::uint64_t generation);
  void connect(std::uint64_t generation, const std::map<int, node_address>& peers);
  void send(int to_rank, const tensor_tag& tag, tensor&& value);

  /// See transport.
  bool receive_for(tensor_waiter& waiter, std::chrono::nanoseconds spin);
  void stop_receiving(const tensor_waiter& waiter);
  void wake_receiver() { bell_.wake(); }

  /// For the transport's thread. Whether anything was done; nothing is while a waiter receives.
  bool progress();
  /// The descriptor to sleep on, or -1. Makes `armed` false if there is work already, or work that makes no
  /// event.
  int arm(bool& armed);
  /// Whether the transport's thread must come back to see whether a waiter still receives.
  bool is_to_be_watched() { return turn_.is_to_be_watched(); }
  struct failures {
    std::uint64_t generation = 0;
    std::vector<peer_failure> of_peers, lost_tensors;
  };
  failures take_failures();

 private:
  /// A thread that receives.
  struct receiver {
    tensor_waiter* waiter = nullptr;  ///< none: the transport's thread
    std::vector<tensor_arrival> arrivals;
  };
  bool poll(receiver& by, int times);
  void hand_over();
  void deliver(tensor_arrival& arrival, tensor_waiter* waiter);
  bool is_authentic(const tensor_arrival& arrival) const;
  void sleep(const tensor_waiter& waiter, std::chrono::nanoseconds idle);

  const surroundings around_;
  ucx_context context_;
  receiving_turn turn_;
  wakeup bell_;  ///< of the waiter whose turn it is
  receiver thread_, waiting_;

  polled_mutex mutex_;
  std::optional<data_plane> plane_;  ///< none before the first generation
  transfer_list retired_;  ///< in flight when their generation ended; peers may still read their memory
};

}  // namespace troupe
