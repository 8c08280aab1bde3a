#include "troupe/ops/top_k.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {

top_k_result top_k(const tensor& x, std::int64_t k) {
  require_floating("top_k", "x", x);
  if (x.shape().rank() < 1) throw_invalid("top_k", "x with at least one axis", describe(x));
  if (k < 0 || k > x.shape()[-1])
    throw_invalid("top_k", "k in [0, " + std::to_string(x.shape()[-1]) + "]", std::to_string(k));
  auto extents = with_last_axis(x.shape(), k);
  top_k_result result{tensor::empty(extents, x.dtype(), x.device()),
                      tensor::empty(extents, dtype::i64, x.device())};
  if (extents.num_elements() > 0) kernels_on(x.device()).top_k.select(x, result.values, result.indices);
  return result;
}

}  // namespace troupe
