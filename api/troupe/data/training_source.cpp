#include "troupe/data/training_source.hpp"

#include "troupe/data/sampler.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

class training_source : public batch_source {
 public:
  training_source(dataset_ptr samples, const sampler_options& options)
      : samples_(std::move(samples)), sampler_(options) {
    sampler_.hint(samples_->reader());
  }

  std::uint64_t num_steps_per_epoch() const override { return sampler_.num_steps_per_epoch(); }

  batch at(std::uint64_t step) override {
    auto content = samples_->read(sampler_.indices(step));
    require_labels(*samples_, content);
    return {content.samples, content.labels};
  }

 private:
  dataset_ptr samples_;
  sampler sampler_;
};

}  // namespace

std::unique_ptr<batch_source> make_training_source(dataset_ptr samples,
                                                   const training_source_options& options) {
  if (!samples) throw bad_input("training needs a data set, got a null pointer");
  if (options.microbatches < 1 || options.batch % options.microbatches != 0)
    throw bad_input("a batch of " + std::to_string(options.batch) + " samples cannot be cut into " +
                    std::to_string(options.microbatches) +
                    " equal microbatches: change --batch or --microbatches");
  sampler_options order{samples->num_samples(), options.batch, options.seed, samples->layout()};
  return std::make_unique<training_source>(std::move(samples), order);
}

}  // namespace troupe
