#pragma once
#include <cstdint>
#include <optional>

#include "troupe/nn/loss.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::detail {

/// How many targets a loss counts in the batch over which an optimizer step averages, known before the loss
/// of the first microbatch is computed. Used by one thread.
class target_count {
 public:
  /// `averages_own`: batches are those of one replica.
  target_count(nn::Loss loss, bool averages_own) : loss_(std::move(loss)), averages_own_(averages_own) {}

  /// Whether of_batch needs learn() first: the loss does not tell what it counts.
  bool needs_example() const { return !loss_.tells_num_counted() && !in_first_microbatch_; }
  /// What the loss counted in the first microbatch of a training step.
  void learn(std::int64_t num_counted) { in_first_microbatch_ = num_counted; }

  /// Counts the targets of mb.batch_targets, once a step; where these are undefined, or the loss does not
  /// tell, `targets`, those of the microbatch, stand for all.
  std::int64_t of_batch(const program::microbatch& mb, const tensor& targets);
  /// Throws bad_input unless the loss counted in a microbatch what of_batch took for granted.
  void require(const tensor& targets, std::int64_t num_counted) const;
  /// Forgets the current step.
  void discard() { counted_.reset(); }

 private:
  struct counted_step {
    std::uint64_t step;
    std::int64_t num_counted;
  };

  nn::Loss loss_;
  bool averages_own_;
  std::optional<std::int64_t> in_first_microbatch_;
  std::optional<counted_step> counted_;
};

}  // namespace troupe::detail
