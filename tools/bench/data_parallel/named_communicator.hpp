#pragma once
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "troupe/execution/inbox/arrivals.hpp"
#include "troupe/execution/replicas/direct_exchange.hpp"
#include "troupe/execution/replicas/sum_buffers.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::bench {

/// What the members of a group call a collective. Calls of one name belong together.
struct call_name {
  std::uint64_t action = 0;  ///< such as the step whose gradients are summed
  int bucket = 0;
  auto operator<=>(const call_name&) const = default;
};

/// All-reduces that are named, not counted: one of each bucket at a time, begun by members in any order. They
/// advance on the thread that calls, only within its calls, and none but wait() blocks. One generation of a
/// transport; a failure of a member ends the process's job elsewhere.
///
/// A call is a direct_exchange of one bucket, as replicas of a job have in a G. A prototype: only `troupe
/// bench ddp` uses it.
///
/// Of one thread. `transport` calls it from its own, too.
class named_communicator final : public transport::transport_events, private transport::tensor_waiter {
 public:
  using transport_maker =
      std::function<std::unique_ptr<transport::transport>(transport::transport_events& events)>;

  explicit named_communicator(const transport_maker& make)
      : arrivals_([this] { transport_->wake_receiver(); }), transport_(make(*this)) {}
  ~named_communicator() override { transport_.reset(); }  // whose thread calls this until then
  named_communicator(const named_communicator&) = delete;
  named_communicator& operator=(const named_communicator&) = delete;

  /// This member's address, for `connect` of all.
  transport::process_address begin() { return transport_->begin_generation(0); }
  /// `members`: the addresses of all, by rank from 0, this one's included.
  void connect(const std::map<int, transport::process_address>& members);

  /// Memory that members of this host read in place. It may be written again once all calls of tensors in it
  /// were taken.
  tensor allocate_shared(shape extents, dtype type) {
    return transport_->allocate_shared(std::move(extents), type);
  }

  /// Begins a call. x: f32, bf16 or f16 [n] with n > 0, n and dtype the same on all members; it must not
  /// change until the call is taken. Throws std::logic_error for another form, and while a call of the bucket
  /// is begun and not taken.
  void all_reduce(const call_name& name, const tensor& x);
  /// Adds up and sends whatever can be.
  void advance();
  /// As advance(); if no call is done after it, sleeps until something comes. Only with a call that has not
  /// been taken.
  void wait();
  /// Gives the sums of each call that has ended: together, one after the other, its n elements. They must not
  /// be written, nor used after the return: they may be in memory of another member.
  void take_done(const std::function<void(const call_name&, const std::vector<tensor>& parts)>& take);

 private:
  static constexpr std::uint64_t generation = 1;

  // transport_events and tensor_waiter
  void on_control(int, std::uint64_t, std::span<const std::byte>) override {}
  void on_tensor(int from_rank, const transport::tensor_tag& tag, tensor value) override;
  void on_peer_error(int, std::uint64_t, const std::string&) override {}
  bool take(int from_rank, const transport::tensor_tag& tag, tensor& value) override;
  bool waits() const override;

  void receive(bool may_sleep);

  execution::arrivals arrivals_;
  std::unique_ptr<transport::transport> transport_;
  int num_members_ = 0;
  execution::inbox arrived_;
  std::map<call_name, std::unique_ptr<execution::direct_exchange>> calls_;  ///< begun and not taken
  /// The same from call to call of a bucket: when all inputs of the next one are here, all members have taken
  /// the last one's sums.
  execution::sum_buffers sum_memory_{
      [this](shape extents, dtype type) { return allocate_shared(std::move(extents), type); }};
  mutable int polls_ = 0;  ///< that receive_for may still do
  bool may_sleep_ = false;
};

}  // namespace troupe::bench
