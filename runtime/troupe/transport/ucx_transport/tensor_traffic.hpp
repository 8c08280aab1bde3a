#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "troupe/transport/data_plane/data_plane.hpp"
#include "troupe/transport/generation_gate.hpp"
#include "troupe/transport/ucx_transport/polled_mutex.hpp"
#include "troupe/transport/ucx_transport/polling_ownership.hpp"
#include "troupe/ucx/ucx_context.hpp"
#include "troupe/ucx/wakeup.hpp"

namespace troupe::transport {

/// Sends and receives tensors between processes: one data plane per generation, polled by the waiter that
/// owns polling (polling_ownership) or else by the transport's thread. Thread-safe. No lock is held while a
/// tensor is delivered, so receivers may send and may take locks that they hold while sending.
class tensor_traffic {
 public:
  /// All must outlive it. `thread` wakes the transport's thread.
  struct dependencies {
    plane_settings& settings;
    generation_gate& gate;
    transport_events& events;
    ucx::wakeup& thread;
    /// Called on the receiving thread when a tensor fails authentication.
    std::function<void(const peer_failure&)> on_bad_peer = nullptr;
  };
  /// Throws ucx_error.
  tensor_traffic(const std::string& transports, const std::string& interface,
                 const dependencies& dependencies);

  /// Stops the previous generation's data plane and returns the address of the new one.
  std::vector<std::byte> begin_generation(std::uint64_t generation);
  void connect(std::uint64_t generation, const std::map<int, process_address>& peers);
  void send(int to_rank, const tensor_tag& tag, tensor&& value);
  /// See transport. Throws system_failure.
  tensor allocate_shared(shape extents, dtype type) { return shared_.empty(std::move(extents), type); }

  /// See transport.
  bool receive_for(tensor_waiter& waiter, std::chrono::nanoseconds spin);
  void stop_receiving(const tensor_waiter& waiter);
  void wake_receiver() { waiter_wakeup_.wake(); }

  /// For the transport's thread. Polls, unless a waiter does. Returns whether anything was done.
  bool progress();
  /// The descriptor to sleep on, or -1. Sets `armed` to false if the thread must not sleep, because there is
  /// work already or work that makes no event.
  int arm(bool& armed);
  /// See polling_ownership::needs_watching.
  bool needs_watching() { return ownership_.needs_watching(); }
  /// See data_plane.
  bool must_look_often();
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
  bool poll(receiver& looking, int times);
  void hand_over();
  void deliver(tensor_arrival& arrival, tensor_waiter* waiter);
  bool is_authentic(const tensor_arrival& arrival) const;
  void sleep(const tensor_waiter& waiter, std::chrono::nanoseconds idle);

  const dependencies dependencies_;
  ucx::ucx_context context_;
  polling_ownership ownership_;
  ucx::wakeup waiter_wakeup_;  ///< of the waiter that owns polling
  receiver thread_, waiting_;

  /// Freed memory is not written again: peers may still read it.
  shared_memory::shared_heap shared_{shared_memory::freed_segments::returned};

  polled_mutex mutex_;
  std::optional<data_plane> plane_;  ///< none before the first generation
  transfer_list retired_;  ///< in flight when their generation ended: peers may still read their memory
};

}  // namespace troupe::transport
