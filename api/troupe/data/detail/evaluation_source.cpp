#include "troupe/data/detail/evaluation_source.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

int largest_divisor(std::int64_t number, int most) {
  while (number % most != 0) --most;
  return most;
}

}  // namespace

evaluation_source::evaluation_source(dataset_ptr samples, std::int64_t batch, int microbatches,
                                     evaluation_part part)
    : samples_(std::move(samples)), part_(part) {
  if (!samples_) throw bad_input("an evaluation needs a data set, got a null pointer");
  if (microbatches < 1 || batch < microbatches)
    throw bad_input("a batch of " + std::to_string(batch) + " samples cannot be cut into " +
                    std::to_string(microbatches) + " microbatches: change --batch or --microbatches");
  if (samples_->num_samples() < 1)
    throw bad_input("an evaluation needs samples, and this data set has none: " +
                    to_string(samples_->sample_extents()));
  batch = std::min(batch, std::max<std::int64_t>(samples_->num_samples(), microbatches));
  num_microbatches_ = largest_divisor(samples_->num_samples(), microbatches);
  batch_ = batch / num_microbatches_ * num_microbatches_;
}

std::uint64_t evaluation_source::num_steps_per_epoch() const {
  return static_cast<std::uint64_t>((samples_->num_samples() + batch_ - 1) / batch_);
}

batch evaluation_source::at(std::uint64_t step) {
  auto first = static_cast<std::int64_t>(step % num_steps_per_epoch()) * batch_;
  auto count = std::min(batch_, samples_->num_samples() - first);
  auto content = samples_->read_rows(first, count);
  if (part_ == evaluation_part::samples) return {content.samples, {}};
  require_labels(*samples_, content);
  return {content.samples, content.labels};
}

}  // namespace troupe::detail
