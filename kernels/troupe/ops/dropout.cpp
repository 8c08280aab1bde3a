#include "troupe/ops/dropout.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {

tensor dropout(const tensor& x, double p, const philox_stream& stream) {
  require_floating("dropout", "x", x);
  if (!(p >= 0 && p < 1)) throw_invalid("dropout", "p in [0, 1)", std::to_string(p));
  constexpr auto max_elements = std::int64_t{1} << 34;  // four for each value of a 32-bit block index
  if (x.num_elements() > max_elements) throw_invalid("dropout", "x of at most 2^34 elements", describe(x));
  auto y = empty_like(x);
  dropout_mask mask{stream.key(), stream.place(), static_cast<std::uint32_t>(p * 0x1p32),
                    static_cast<float>(1 / (1 - p))};
  kernels_on(x.device()).dropout.apply(x, mask, y);
  return y;
}

}  // namespace troupe
