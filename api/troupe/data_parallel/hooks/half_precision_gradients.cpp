#include "troupe/data_parallel/hooks/half_precision_gradients.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/gradients/dense_gradient.hpp"

namespace troupe {

half_precision_gradients::half_precision_gradients(dtype type)
    : compressed_hook("half_precision_gradients", "", 0), type_(type) {
  if (type != dtype::bf16 && type != dtype::f16)
    throw_invalid("half_precision_gradients", "bf16 or f16", to_string(type));
}

/// The whole bucket at once.
std::vector<compressed_hook::segment> half_precision_gradients::segments_of(const gradient_bucket& bucket,
                                                                            std::size_t) const {
  std::vector<segment> result(1);
  result[0].count = bucket.sum.num_elements();
  result[0].compressors.push_back(std::make_unique<gradients::dense_gradient>(type_));
  return result;
}

}  // namespace troupe
