#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "troupe/optim/parameter_part.hpp"
#include "troupe/parallel/bucket_exchange.hpp"
#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

struct gradient_reducer_options {
  bucket_limits buckets;
  int num_leaves = 1;  ///< virtual replicas of this member
  bool gradient_as_bucket_view = true;
  bool find_unused_parameters = false;
};

/// The gradients of a DataParallel on their way to their sum over all replicas. A step is a turn for each
/// replica of this member; in the last turn buckets are sent off as their gradients come, in the order of
/// bucket_exchange. Until a sum has come, its parameters have a pending update.
class gradient_reducer {
 public:
  /// The parameters and the group outlive it.
  gradient_reducer(std::vector<named_parameter> parameters, communicator& group,
                   const gradient_reducer_options& options);

  /// Which of this member's replicas has its turn.
  int turn() const { return turn_; }
  /// The gradient of a parameter is complete in this turn.
  void on_gradient(parameter& which);
  /// Its first `count` rows are.
  void on_rows(parameter& which, std::int64_t count);
  /// All passes of this turn have run: true if it was the last of the step, and the sums are on their way
  /// (with a hook or find_unused_parameters: there). Throws std::logic_error, after it has aborted the group,
  /// for parameters that need a gradient and have none.
  bool end_turn();
  /// Whether the parameters' gradients are the sums of the newest step; no longer once they were forgotten.
  bool holds_sums() const { return holds_sums_; }
  void forget_sums() { holds_sums_ = false; }
  /// What is on its way has come, and what was to follow has been done.
  void finish() { exchange_.receive_all(); }
  /// What is done for all elements of each bucket, now or when their sum has come. Gradients have it before
  /// the last piece only if sums_come_by_pieces().
  void follow(const bucket_exchange::piece_action& what) { exchange_.follow(what); }
  bool sums_come_by_pieces() const { return options_.gradient_as_bucket_view; }
  /// What is in a piece; parameters are numbered as in parameters_of(bucket).
  std::vector<optim::parameter_part> parts_in(const received_piece& which) const;
  std::size_t num_buckets() const { return buckets_.size(); }
  /// Those of one bucket, in the order of the model.
  std::vector<named_parameter> parameters_of(std::size_t bucket) const;
  /// From the next step on; null: all_reduce.
  void use(std::shared_ptr<comm_hook> hook);
  std::vector<named_tensor> hook_state() const;

 private:
  std::vector<reduced_bucket> make_buckets();

  struct place {
    std::size_t bucket, part;
  };
  struct progress {
    std::size_t num_missing = 0;               ///< gradients, in this turn
    std::unique_ptr<bucket_reduction> hooked;  ///< null once it is done
  };

  void make_hooked_buckets();
  void begin_turn(int turn);
  void mark_complete(const parameter& which);
  void complete(std::size_t bucket);
  void send(std::size_t bucket);
  void offer_at_once(const parameter& which, std::int64_t num_elements);
  void offer(const place& of, std::int64_t num_elements);
  void send_hooked(std::size_t bucket);
  void account_for_missing();
  [[noreturn]] void give_up(const std::vector<std::string>& unused);
  void end_step();
  void receive_hooked();
  void copy_sum(std::size_t bucket);
  void agree_on_used();

  // Constant after construction.
  std::vector<named_parameter> parameters_;
  communicator& group_;
  gradient_reducer_options options_;
  std::vector<planned_bucket> planned_;
  std::vector<reduced_bucket> buckets_;
  std::unordered_map<const parameter*, place> places_;
  // From step to step.
  std::shared_ptr<comm_hook> hook_;
  std::vector<gradient_bucket> hooked_buckets_;
  bool holds_sums_ = false;
  // The current step.
  int turn_ = 0;
  std::unordered_set<const parameter*> used_;
  // The current turn.
  std::unordered_set<const parameter*> complete_;
  std::unordered_map<const parameter*, std::int64_t> num_offered_;  ///< elements, of those that were
  std::size_t num_complete_buckets_ = 0;
  std::vector<progress> progress_;  // by bucket

  bucket_exchange exchange_;  // the first to go
};

}  // namespace troupe
