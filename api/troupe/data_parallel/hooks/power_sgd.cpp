#include "troupe/data_parallel/hooks/power_sgd.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/gradients/dense_gradient.hpp"
#include "troupe/gradients/factored_gradient.hpp"

namespace troupe {

power_sgd::power_sgd(const power_sgd_options& options)
    : compressed_hook("power_sgd", "power_sgd", options.dense_steps), options_(options) {
  if (options.rank < 1) throw_invalid("power_sgd", "rank >= 1", std::to_string(options.rank));
  if (!(options.min_compression_rate >= 1))
    throw_invalid("power_sgd", "min_compression_rate >= 1", std::to_string(options.min_compression_rate));
  if (options.dense_steps < 0)
    throw_invalid("power_sgd", "dense_steps >= 0", std::to_string(options.dense_steps));
}

std::vector<compressed_hook::segment> power_sgd::segments_of(const gradient_bucket& bucket,
                                                             std::size_t num_compressors) const {
  std::vector<segment> result;
  for (const auto& part : bucket.parts) {
    auto& added = result.emplace_back(part.first, part.extents.num_elements(), part.extents);
    auto factors = gradients::factors_of(part.extents, options_.rank, options_.min_compression_rate);
    if (factors.rank == 0) {
      added.compressors.push_back(std::make_unique<gradients::dense_gradient>(dtype::f32));
      continue;
    }
    auto q = tensor::empty({factors.columns, factors.rank});
    for (std::size_t i = 0; i < num_compressors; ++i)
      added.compressors.push_back(
          std::make_unique<gradients::factored_gradient>(factors, part.parameter, options_.seed, q));
  }
  return result;
}

}  // namespace troupe
