#include "troupe/data/detail/training_source.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "troupe/data/sampler.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

class training_source : public batch_source {
 public:
  training_source(dataset_ptr samples, const sampler_options& order, const training_source_options& options)
      : samples_(std::move(samples)),
        sampler_(order),
        flush_every_(static_cast<std::uint64_t>(options.flush_every)),
        position_(options.position) {}

  std::uint64_t num_steps_per_epoch() const override { return sampler_.num_steps_per_epoch(); }

  batch at(std::uint64_t step) override {
    if (position_) step = position_(step);
    std::vector<std::int64_t> order;
    for (auto each = step * flush_every_; each < (step + 1) * flush_every_; ++each)
      std::ranges::copy(sampler_.indices(each, samples_->reader().get()), std::back_inserter(order));
    auto content = samples_->read(order);
    require_labels(*samples_, content);
    return {content.samples, content.labels};
  }

 private:
  dataset_ptr samples_;
  sampler sampler_;
  std::uint64_t flush_every_;
  std::function<std::uint64_t(std::uint64_t)> position_;
};

}  // namespace

std::unique_ptr<batch_source> make_training_source(dataset_ptr samples,
                                                   const training_source_options& options) {
  if (!samples) throw bad_input("training needs a data set, got a null pointer");
  if (options.replicas > 1 && options.batch % (std::int64_t{options.replicas} * options.microbatches) != 0)
    throw bad_input("a batch of " + std::to_string(options.batch) + " samples cannot be cut into " +
                    std::to_string(options.microbatches) + " equal microbatches for each of " +
                    std::to_string(options.replicas) +
                    " replicas: change --batch, --replicas or --microbatches");
  if (options.microbatches < 1 || options.batch % options.microbatches != 0)
    throw bad_input("a batch of " + std::to_string(options.batch) + " samples cannot be cut into " +
                    std::to_string(options.microbatches) +
                    " equal microbatches: change --batch or --microbatches");
  sampler_options order{samples->num_samples(), options.batch, options.seed, samples->layout()};
  return std::make_unique<training_source>(std::move(samples), order, options);
}

}  // namespace troupe::detail
