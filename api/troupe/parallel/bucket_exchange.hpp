#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "troupe/collective/communicator.hpp"
#include "troupe/parallel/reduced_bucket.hpp"

namespace troupe {

/// Elements [first, first + count) of a bucket whose sum is there.
struct received_piece {
  std::size_t bucket;
  std::int64_t first, count;
  bool is_last;  ///< the others of the bucket are there as well
};

/// The buckets of a DataParallel on their way to their sums over all members, an all_reduce for each piece.
/// update_of(b) is the pending update of a bucket's parameters: waiting for it receives the bucket's sum.
/// What is to follow a sum, such as the step of its weights, is done when it is received, while later pieces
/// are still on their way.
///
/// Members call for pieces in one order, on which they agree: at first that of the backward pass; later what
/// member 0 makes of the times it has measured (communication_order.hpp). No order changes a bit.
///
/// The first failure ends the step: it is thrown to whoever waits, and nothing is waited for any more.
/// Buckets that were received by then have been followed up, others not.
class bucket_exchange {
 public:
  using bucket_action = std::function<void(std::size_t bucket)>;
  using piece_action = std::function<void(const received_piece& which)>;

  /// `on_sum` is called for each bucket when it is received. Buckets and group outlive it.
  bucket_exchange(const std::vector<planned_bucket>& planned, const std::vector<reduced_bucket>& buckets,
                  communicator& group, bucket_action on_sum);
  /// Receives what is on its way, unless the group has failed.
  ~bucket_exchange();
  bucket_exchange(const bucket_exchange&) = delete;
  bucket_exchange& operator=(const bucket_exchange&) = delete;

  std::shared_ptr<pending_update> update_of(std::size_t bucket) const { return updates_[bucket]; }

  /// Elements [first, first + count) of this member's share are complete; each once in a step. The first ones
  /// begin a step, and wait for what is left of the one before.
  void offer(std::size_t bucket, std::int64_t first, std::int64_t count);
  /// Everything was offered; from now on sums are waited for where they are used.
  void end_step();
  /// For all elements of each bucket, piece by piece: now if their sum is there, otherwise when it is
  /// received. Until the last piece of a bucket has come, its update is pending.
  void follow(const piece_action& what);
  void receive(std::size_t bucket);
  void receive_all();

 private:
  using clock = std::chrono::steady_clock;
  class bucket_update;

  struct piece {
    std::size_t bucket;
    std::int64_t first, count;
    std::int64_t num_elements;  ///< of gradients in it; the others are between them
    std::int64_t num_missing;   ///< of these, not offered yet in this step
    clock::time_point ready;
    work summed;
  };

  void begin_step();
  void send_ready();
  void receive_next();
  void on_received(const piece& which);
  void give_up();
  bool is_planning_step() const;
  void propose_order();
  void adopt_order();

  // Constant after construction.
  communicator& group_;
  const std::vector<reduced_bucket>& buckets_;
  bucket_action on_sum_;
  std::vector<std::shared_ptr<pending_update>> updates_;
  std::vector<std::vector<std::size_t>> pieces_of_;  // by bucket
  // From step to step.
  std::vector<std::size_t> order_;
  tensor agreed_;  // the order to come, member 0's
  work agreement_;
  bool is_order_sent_ = false;
  std::uint64_t num_steps_ = 0;
  // The current step.
  std::vector<piece> pieces_;
  std::vector<std::size_t> num_missing_;  // pieces, by bucket
  bool is_under_way_ = false;
  std::size_t num_sent_ = 0, num_received_ = 0;
  piece_action following_;
};

}  // namespace troupe
