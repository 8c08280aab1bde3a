#include "troupe/data/detail/given_batches.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

tensor copy_of(const tensor& given) { return given.device() == device{} ? given.clone() : given.to({}); }

}  // namespace

void given_batches::put(std::uint64_t step, const batch& given) {
  batch copy{copy_of(given.inputs), copy_of(given.targets)};
  std::lock_guard lock(mutex_);
  if (step >= released_before_) batches_.insert_or_assign(step, std::move(copy));
}

void given_batches::release_before(std::uint64_t step) {
  std::lock_guard lock(mutex_);
  released_before_ = std::max(released_before_, step);
  batches_.erase(batches_.begin(), batches_.lower_bound(released_before_));
}

std::size_t given_batches::size_bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [step, kept] : batches_) sum += kept.inputs.size_bytes() + kept.targets.size_bytes();
  return sum;
}

batch given_batches::at(std::uint64_t step) {
  std::lock_guard lock(mutex_);
  if (auto found = batches_.find(step); found != batches_.end()) return found->second;
  throw bad_input("the job goes back to step " + std::to_string(step + 1) +
                  ", whose batch was given to forward_backward, and this process no longer has it: batches "
                  "are kept until "
                  "the state of a later step survives the loss of a process, and with --snapshot-dir FOLDER "
                  "until it is on "
                  "disk. More was lost at once. Start the job again, with --resume if it has snapshots");
}

}  // namespace troupe::detail
