#include "troupe/data_parallel/hooks/top_k_gradients.hpp"

#include <limits>

#include "troupe/error/errors.hpp"
#include "troupe/gradients/sparse_gradient.hpp"

namespace troupe {

top_k_gradients::top_k_gradients(const top_k_gradients_options& options)
    : compressed_hook("top_k_gradients", "top_k", options.dense_steps), options_(options) {
  if (!(options.ratio > 0 && options.ratio <= 1))
    throw_invalid("top_k_gradients", "0 < ratio <= 1", std::to_string(options.ratio));
  if (!(options.momentum >= 0 && options.momentum < 1))
    throw_invalid("top_k_gradients", "0 <= momentum < 1", std::to_string(options.momentum));
  if (options.min_compressed_elements < 0)
    throw_invalid("top_k_gradients", "min_compressed_elements >= 0",
                  std::to_string(options.min_compressed_elements));
  if (options.dense_steps < 0)
    throw_invalid("top_k_gradients", "dense_steps >= 0", std::to_string(options.dense_steps));
}

std::vector<compressed_hook::segment> top_k_gradients::segments_of(const gradient_bucket& bucket,
                                                                   std::size_t num_compressors) const {
  std::vector<segment> result;
  for (const auto& part : bucket.parts) {
    auto count = part.extents.num_elements();
    if (count > std::numeric_limits<std::int32_t>::max())
      throw_invalid("top_k_gradients", "at most 2^31 - 1 elements in a parameter",
                    part.parameter + " with " + std::to_string(count));
    auto& added = result.emplace_back(part.first, count, part.extents);
    auto fraction = count == 0 || count < options_.min_compressed_elements ? 1 : options_.ratio;
    for (std::size_t i = 0; i < num_compressors; ++i)
      added.compressors.push_back(std::make_unique<gradients::sparse_gradient>(
          fraction, part.extents, part.parameter, options_.momentum));
  }
  return result;
}

}  // namespace troupe
