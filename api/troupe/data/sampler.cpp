#include "troupe/data/sampler.hpp"

#include "troupe/error/errors.hpp"

namespace troupe {

std::uint64_t steps_per_epoch(const sampler_options& options) {
  if (options.batch < 1)
    throw bad_input("the batch must be at least 1 sample, got " + std::to_string(options.batch));
  if (options.num_samples < options.batch)
    throw bad_input("a batch of " + std::to_string(options.batch) +
                    " samples is larger than the data set of " + std::to_string(options.num_samples) +
                    ": use a smaller --batch");
  return static_cast<std::uint64_t>(options.num_samples / options.batch);
}

std::vector<std::int64_t> batch_indices(const sampler_options& options, std::uint64_t global_step) {
  return sampler(options).indices(global_step);
}

sampler::sampler(const sampler_options& options)
    : options_(options),
      num_steps_per_epoch_(steps_per_epoch(options)),
      order_({.num_samples = options.num_samples, .seed = options.seed, .layout = options.layout}) {}

std::vector<std::int64_t> sampler::indices(std::uint64_t global_step, sample_reader* reader) {
  auto epoch = global_step / num_steps_per_epoch_;
  auto first = static_cast<std::int64_t>(global_step % num_steps_per_epoch_) * options_.batch;
  std::vector<std::int64_t> batch;
  std::vector<sample_range> read_soon;
  {
    std::lock_guard lock(mutex_);
    for (std::int64_t i = 0; i < options_.batch; ++i) batch.push_back(order_.at(epoch, first + i));
    read_soon = order_.take_read_soon();
  }
  hint(reader, read_soon);
  return batch;
}

}  // namespace troupe
