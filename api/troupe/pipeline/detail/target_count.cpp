#include "troupe/pipeline/detail/target_count.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/pipeline/detail/first_pass_checks.hpp"

namespace troupe::detail {

std::int64_t target_count::of_batch(const program::microbatch& mb, const tensor& targets) {
  auto num_microbatches = averages_own_ ? mb.count : mb.global_count();
  if (in_first_microbatch_) return *in_first_microbatch_ * num_microbatches;
  if (!mb.batch_targets.defined()) return loss_.num_counted(targets) * num_microbatches;
  if (!counted_ || counted_->step != mb.step) counted_ = {mb.step, loss_.num_counted(mb.batch_targets)};
  return counted_->num_counted;
}

void target_count::require(const tensor& targets, std::int64_t num_counted) const {
  auto expected = in_first_microbatch_ ? *in_first_microbatch_ : loss_.num_counted(targets);
  if (num_counted == expected) return;
  auto counted = "the loss: expected loss_result::num_counted of " + std::to_string(expected);
  auto found = ", got " + std::to_string(num_counted) + " of targets " + describe(targets);
  if (!in_first_microbatch_)
    throw bad_input(counted + ", which its num_counted returns" + found + ": both must count alike");
  throw bad_input(counted + ", as in the first microbatch" + found + ": " + advice_on_counts);
}

}  // namespace troupe::detail
