#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/data_parallel/reduced_bucket.hpp"

namespace troupe {

/// Elements [first, first + count) of a bucket after their reduction.
struct reduced_chunk {
  std::size_t bucket;
  std::int64_t first, count;
  bool is_last;  ///< all other chunks of the bucket are reduced too
};

/// All-reduces the gradient buckets of a DataParallel asynchronously, one call per chunk. update_of(b)
/// is the pending update of the parameters in bucket b: to wait for it waits for the bucket's sum. Actions
/// that depend on a sum, such as the optimizer's step, run when the sum arrives, while later chunks are still
/// in flight.
///
/// All members start the chunks' calls in the same order: at first that of the backward pass,
/// later the order that member 0 computes from measured times and broadcasts (communication_order.hpp). The
/// order does not change any bit of the result.
///
/// The first failure ends the step: the waiting call throws it, and no update stays pending. Actions for
/// chunks that were reduced before have run, the others have not.
class bucket_exchange {
 public:
  using bucket_callback = std::function<void(std::size_t bucket)>;
  using chunk_callback = std::function<void(const reduced_chunk& chunk)>;

  /// `on_sum` is called for each bucket when its sum is complete. `buckets` and `group` must outlive this
  /// object.
  bucket_exchange(const std::vector<planned_bucket>& planned, const std::vector<reduced_bucket>& buckets,
                  communicator& group, bucket_callback on_sum);
  /// Waits for all calls in flight, unless the group has failed.
  ~bucket_exchange();
  bucket_exchange(const bucket_exchange&) = delete;
  bucket_exchange& operator=(const bucket_exchange&) = delete;

  std::shared_ptr<pending_update> update_of(std::size_t bucket) const { return updates_[bucket]; }

  /// Marks elements [first, first + count) of this member's gradients as complete; each element once per
  /// step. The first call of a step waits for the calls of the step before.
  void mark_ready(std::size_t bucket, std::int64_t first, std::int64_t count);
  /// Ends the step: all elements are ready. From now on sums are waited for where they are used.
  void end_step();
  /// Calls `callback` for each chunk: now if it is reduced, otherwise when it is. The update of a bucket
  /// stays pending until its last chunk is reduced.
  void on_reduced(const chunk_callback& callback);
  void receive(std::size_t bucket);
  void receive_all();

 private:
  using clock = std::chrono::steady_clock;
  class bucket_update;

  struct chunk {
    std::size_t bucket;
    std::int64_t first, count;
    std::int64_t num_elements;  ///< gradient elements in it; the rest is padding
    std::int64_t num_missing;   ///< elements of these that are not ready yet in this step
    clock::time_point ready;
    work summed;
  };

  void begin_step();
  void send_ready();
  void receive_next();
  void on_received(const chunk& received);
  void abort_step();
  bool is_planning_step() const;
  void propose_order();
  void adopt_order();

  // Constant after construction.
  communicator& group_;
  const std::vector<reduced_bucket>& buckets_;
  bucket_callback on_sum_;
  std::vector<std::shared_ptr<pending_update>> updates_;
  std::vector<std::vector<std::size_t>> chunks_of_;  // by bucket
  // From step to step.
  std::vector<std::size_t> order_;
  tensor next_order_;  // chunk order for the next steps, computed by member 0
  work order_broadcast_;
  bool is_order_broadcast_ = false;
  std::uint64_t num_steps_ = 0;
  // The current step.
  std::vector<chunk> chunks_;
  std::vector<std::size_t> num_missing_;  // chunks not reduced yet, by bucket
  bool is_step_active_ = false;
  std::size_t num_sent_ = 0, num_received_ = 0;
  chunk_callback on_chunk_;
};

}  // namespace troupe
