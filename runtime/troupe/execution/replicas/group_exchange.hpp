#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "troupe/collective/calls/work.hpp"
#include "troupe/execution/replicas/replica_exchange.hpp"
#include "troupe/execution/replicas/replica_group.hpp"

namespace troupe::execution {

/// An exchange by calls of a communicator, as the leader of a process's replicas sees it: an all_reduce for
/// each bucket. For a message, whose lengths may differ, an all_reduce of the lengths and an all_gather.
///
/// All members of the group make the same calls in the same order, whatever the order in which buckets are
/// given to each. In the first exchange it is that of their numbers, then the one in which they came to
/// member 0 (replica_group::call_order). Where a process hosts several replicas, the leader adds up theirs
/// first; 16-bit buckets are then reduced in f32 and rounded at the end.
///
/// The sums are those of the communicator: in its library's order of members, or in the fixed tree if it has
/// that and each member one replica. All replicas get the same bits.
class group_exchange final : public replica_exchange {
 public:
  /// The group has failed, since a process was lost or a connection has broken: nothing goes on any more.
  using failure_callback = std::function<void(const std::exception& cause)>;

  group_exchange(replica_messages messages, int num_buckets, replica_group group, sum_memory memory,
                 failure_callback on_failure);

  bool can_go_on() const override;
  /// Begins the calls whose turn it is.
  void add_up() override;
  /// Throws collective_error if the members make different calls.
  void go_on(const taker& take) override;

 private:
  struct bucket_state {
    tensor own;      ///< as given; undefined: not yet
    tensor lengths;  ///< of a message: i64 [replicas]
    tensor sums;     ///< of gradients, on the CPU
    tensor result;   ///< where the group is
    work call;       ///< the newest one
    bool is_message() const { return own.dtype() == dtype::i32; }
  };

  void begin(int bucket, const tensor& gradients) override;
  bool is_here(int bucket) const;
  bool can_begin() const;
  void begin_next();
  void learn_order();
  std::vector<tensor> take_inputs(int bucket) const;
  void begin_sum(int bucket, const std::vector<tensor>& inputs);
  void begin_lengths(bucket_state& begun, const std::vector<tensor>& inputs);
  void begin_gather(bucket_state& begun);
  void end_turn();
  bool has_ended_well(work& call);
  std::vector<tensor> results_of(bucket_state& ended) const;
  void send_to_followers(int bucket, const std::vector<tensor>& results) const;
  dtype reduced_type(dtype given) const;
  communicator& calls() const { return *group_.calls; }
  bucket_state& state_of(int bucket) { return buckets_[static_cast<std::size_t>(bucket)]; }
  const bucket_state& state_of(int bucket) const { return buckets_[static_cast<std::size_t>(bucket)]; }

  replica_group group_;
  std::vector<int> local_;  ///< the replicas of this process, this one first
  sum_memory memory_;
  failure_callback on_failure_;
  std::vector<bucket_state> buckets_;
  std::vector<std::int32_t> given_;   ///< buckets, in the order in which they were given here
  std::vector<std::int32_t> order_;   ///< buckets by their turn; empty: it is still to come from member 0
  std::vector<tensor> own_messages_;  ///< of this process, between the two calls of the next bucket
  std::size_t next_ = 0;              ///< the turn that comes next
  std::size_t num_ended_ = 0;         ///< calls end in their order
  bool has_failed_ = false;
};

}  // namespace troupe::execution
