#pragma once
#include <atomic>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/execution/inbox/arrivals.hpp"
#include "troupe/execution/inbox/inbox.hpp"
#include "troupe/tensor/memory_account.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::devices {

/// Where a device waits for tensors: by polling the transport on its own thread while it owns polling
/// (polling_ownership), else in its mailbox, where the transport's thread sends it tensor_arrived. It stops
/// waiting for mail and for a fence.
class input_waiter : private transport::tensor_waiter {
 public:
  struct options {
    transport::transport* from = nullptr;
    std::chrono::nanoseconds spin{0};  ///< how long to poll before sleeping: device_options::spin
    std::shared_ptr<const std::atomic<std::uint64_t>> fenced;
    memory_account account = {};  ///< charged for tensors from their arrival on
    std::shared_ptr<execution::arrivals>
        from_replicas;  ///< tensors of other replicas: device_options::from_replicas
    /// Set when the device has mail that must not wait for the end of an action.
    std::shared_ptr<const std::atomic<bool>> interrupted = nullptr;
  };
  /// `self` is the device's actor and outlives the waiter.
  input_waiter(caf::event_based_actor* self, options chosen) : self_(self), options_(std::move(chosen)) {}
  input_waiter(const input_waiter&) = delete;
  input_waiter& operator=(const input_waiter&) = delete;
  ~input_waiter() override { stop(); }

  /// Takes tensors of this generation for these stages of a lane.
  void begin_generation(std::uint64_t generation, int replica, int slice, std::vector<int> stages);
  /// Takes no more tensors until the next generation begins.
  void end_generation();
  void put(const transport::tensor_tag& tag, tensor value);
  execution::inbox& arrived() { return arrived_; }
  std::size_t num_held() const { return arrived_.num_held() + options_.from_replicas->num_held(); }
  /// Puts what has come from other replicas into the inbox.
  void take_from_replicas() { options_.from_replicas->move_to(arrived_); }
  bool is_fenced() const { return options_.fenced->load(std::memory_order_acquire) > generation_; }
  bool has_mail() const { return !self_->mailbox().empty(); }
  /// Waits for a tensor. True: one has arrived. False: there is mail, or the actor must wait in its mailbox.
  bool receive();
  /// Waits for a tensor from other replicas, whatever is in the mailbox. Throws action_interrupted if the
  /// generation is fenced, or options::interrupted is set.
  void receive_in_action();
  /// Gives up polling ownership, so that the transport's thread receives meanwhile.
  void stop() { options_.from->stop_receiving(*this); }

 private:
  bool take(int from_rank, const transport::tensor_tag& tag, tensor& value) override;
  bool waits() const override;
  bool is_mine(const transport::tensor_tag& tag) const;
  bool is_interrupted() const { return is_fenced() || (options_.interrupted && *options_.interrupted); }
  void wait_briefly() const;

  caf::event_based_actor* self_;
  options options_;
  execution::inbox arrived_;
  std::uint64_t generation_ = 0;
  int replica_ = 0, slice_ = 0;
  std::vector<int> stages_;
  bool has_come_ = false;  ///< a tensor has come since this wait began
  /// While receive_in_action waits: how many tensors have arrived there as far as it has looked.
  std::optional<std::uint64_t> seen_in_action_;
};

}  // namespace troupe::actors::devices
