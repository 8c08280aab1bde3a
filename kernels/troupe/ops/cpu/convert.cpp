#include "troupe/ops/convert.hpp"

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe {
namespace {

TROUPE_CLONES void convert(const std::uint8_t* x, float scale, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = static_cast<float>(x[i]) * scale;
}

}  // namespace

tensor to_float(const tensor& x, float scale) {
  require_argument("to_float", "x", x, dtype::u8, x.extents());
  auto y = tensor::empty(x.extents());
  convert(x.values<std::uint8_t>().data(), scale, y.values<float>().data(), x.num_elements());
  return y;
}

}  // namespace troupe
