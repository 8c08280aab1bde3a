#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "troupe/data_parallel/bucket_exchange.hpp"
#include "troupe/data_parallel/comm_hook.hpp"
#include "troupe/optim/parameter_part.hpp"

namespace troupe {

struct gradient_reducer_options {
  bucket_limits buckets;
  collective::logical_rank_map replicas;  ///< the virtual replicas of each member
  bool gradient_as_bucket_view = true;
  bool find_unused_parameters = false;
};

/// Reduces the gradients of a DataParallel over all virtual replicas (as DDP's Reducer). In each step the
/// replicas of this member run one after the other; during the backward pass of the last one, buckets are
/// reduced as their gradients become ready, in the order of bucket_exchange. The parameters of a bucket have
/// a pending update until its sum arrives.
class gradient_reducer {
 public:
  /// The parameters and the group must outlive this object.
  gradient_reducer(std::vector<named_parameter> parameters, communicator& group,
                   const gradient_reducer_options& options);

  /// The replicas of each member.
  const collective::logical_rank_map& replicas() const { return options_.replicas; }
  /// The replicas of this member.
  const std::vector<int>& own_replicas() const { return options_.replicas.leaves_of(group_.rank()); }
  /// The index, within this member, of the replica that runs.
  int local_replica() const { return local_replica_; }
  /// Called when the current replica's gradient of a parameter is complete.
  void on_gradient(parameter& param);
  /// Called when the first `count` rows of the gradient are complete.
  void on_rows(parameter& param, std::int64_t count);
  /// Ends the current replica's passes; on a member without replicas, its part in the step. Returns true if
  /// it was the last replica of the step: the reductions are then in flight (with a hook or
  /// find_unused_parameters, complete). Throws std::logic_error, after aborting the group, if a parameter
  /// needs a gradient and has none.
  bool end_replica();
  /// Whether the parameters' gradients are the sums of the latest step and forget_sums() has not been called
  /// since.
  bool has_sums() const { return has_sums_; }
  void forget_sums() { has_sums_ = false; }
  /// Waits until all reductions in flight and their callbacks are done.
  void finish() { exchange_.receive_all(); }
  /// Calls `callback` for each chunk now or when it is reduced. Before the last chunk of a bucket, the
  /// parameters' gradients hold the sums only if reduces_by_chunk().
  void on_reduced(const bucket_exchange::chunk_callback& callback) { exchange_.on_reduced(callback); }
  bool reduces_by_chunk() const { return options_.gradient_as_bucket_view; }
  /// The parameter elements in a chunk; indices are those of parameters_of(bucket).
  std::vector<optim::parameter_part> parts_in(const reduced_chunk& chunk) const;
  std::size_t num_buckets() const { return buckets_.size(); }
  /// The parameters of one bucket, in the order of the model.
  std::vector<named_parameter> parameters_of(std::size_t bucket) const;
  /// Sets the hook from the next step on; null: all_reduce.
  void use(std::shared_ptr<comm_hook> hook);
  std::vector<named_tensor> hook_state() const;

 private:
  std::vector<reduced_bucket> make_buckets();

  struct bucket_slot {
    std::size_t bucket, part;
  };
  struct bucket_state {
    std::size_t num_missing = 0;               ///< gradients of the current replica that are not complete
    std::unique_ptr<bucket_reduction> hooked;  ///< null once it is done
  };

  int num_own() const { return static_cast<int>(own_replicas().size()); }
  void make_hooked_buckets();
  void begin_replica(int local_replica);
  void mark_complete(const parameter& param);
  void complete(std::size_t bucket);
  void send_without_replicas();
  void send(std::size_t bucket);
  void mark_ready_early(const parameter& param, std::int64_t num_elements);
  void mark_ready(const bucket_slot& slot, std::int64_t num_elements);
  void send_hooked(std::size_t bucket);
  void mark_unused_ready();
  [[noreturn]] void abort_step(const std::vector<std::string>& unused);
  void end_step();
  void receive_hooked();
  void copy_sum(std::size_t bucket);
  void all_reduce_used();

  // Constant after construction.
  std::vector<named_parameter> parameters_;
  communicator& group_;
  gradient_reducer_options options_;
  std::vector<planned_bucket> planned_;
  std::vector<reduced_bucket> buckets_;
  std::unordered_map<const parameter*, bucket_slot> slots_;
  // From step to step.
  std::shared_ptr<comm_hook> hook_;
  std::vector<gradient_bucket> hooked_buckets_;
  bool has_sums_ = false;
  // The current step.
  int local_replica_ = 0;
  std::unordered_set<const parameter*> used_;
  // The current replica.
  std::unordered_set<const parameter*> complete_;
  std::unordered_map<const parameter*, std::int64_t>
      num_ready_;  ///< elements marked ready so far, by parameter
  std::size_t num_complete_buckets_ = 0;
  std::vector<bucket_state> bucket_states_;  // by bucket

  bucket_exchange exchange_;  // destroyed first: its callbacks use the members above
};

}  // namespace troupe
