// Slices of tensors whose rows are longer than the pitches that CUDA's copies of rows take.
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <new>
#include <vector>

#include "support/bits.hpp"
#include "support/devices.hpp"
#include "troupe/ops/rearrange.hpp"

using troupe::dtype;
using troupe::shape;
using troupe::tensor;
using troupe::testing::same_bits;

namespace {

constexpr std::int64_t length = (std::int64_t{1} << 31) + 5;

tensor of_bytes(const std::vector<std::uint8_t>& values, const shape& extents) {
  return tensor::from(values, extents);
}

/// Not filled. A case is skipped where the GPU lacks the memory.
tensor bytes_on_gpu(const shape& extents) {
  auto gpu = troupe::testing::first_gpu();
  tensor made;
  try {
    made = tensor::empty(extents, dtype::u8, gpu);
  } catch (const std::bad_alloc&) {
    SKIP("not enough memory for " + to_string(extents) + " bytes");
  }
  return made;
}

}  // namespace

TEST_CASE("GPUs: a slice of a tensor of more than 2 GiB") {
  auto x = bytes_on_gpu({length});
  x.rows(length - 4, 4).copy_from(of_bytes({1, 2, 3, 4}, {4}));
  CHECK(same_bits(slice(x, 0, length - 3, 2), of_bytes({2, 3}, {2})));
}

TEST_CASE("GPUs: a slice of rows of more than 2 GiB each") {
  auto x = bytes_on_gpu({2, length});
  auto elements = x.reshape({2 * length});
  elements.rows(length - 4, 8).copy_from(of_bytes({1, 2, 3, 4, 5, 6, 7, 8}, {8}));
  elements.rows(2 * length - 4, 4).copy_from(of_bytes({9, 10, 11, 12}, {4}));
  CHECK(same_bits(slice(x, 1, length - 3, 3), of_bytes({2, 3, 4, 10, 11, 12}, {2, 3})));
}
