// Copies of rows between tensors of any size. Large ones take memory only where something is written.
#include "troupe/tensor/cuda/pitched_copy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

#include "support/bits.hpp"
#include "support/cuda_emulation/runtime/gpus.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/tensor.hpp"

using troupe::device;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::same_bits;

namespace {

constexpr device first_gpu{device::kind::cuda, 0};
constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 5;  // the least pitch that is refused is 2^31

/// [rows, columns] whose first and last bytes of each row are set.
tensor rows_with_ends(std::int64_t rows, std::int64_t columns) {
  auto made = tensor::empty({rows, columns}, dtype::u8, first_gpu);
  auto flat = made.reshape({rows * columns});
  for (std::int64_t row = 0; row < rows; ++row) {
    auto number = static_cast<std::uint8_t>(10 * row);
    flat.rows(row * columns, 2).copy_from(tensor::from(std::vector<std::uint8_t>{number, 1}, {2}));
    flat.rows((row + 1) * columns - 3, 3)
        .copy_from(tensor::from(std::vector<std::uint8_t>{2, 3, number}, {3}));
  }
  return made;
}

/// `width` columns of each row, from column `first` on, to column `to_first` of `to`.
void copy_columns(const tensor& from, std::int64_t first, std::int64_t width, tensor& to,
                  std::int64_t to_first) {
  troupe::gpu_scope scope(first_gpu.index);
  auto pitch = [](const tensor& value) { return static_cast<std::size_t>(value.shape()[1]); };
  troupe::queue({.to = to.bytes().data() + to_first,
                 .to_pitch_bytes = pitch(to),
                 .from = from.bytes().data() + first,
                 .from_pitch_bytes = pitch(from),
                 .width_bytes = static_cast<std::size_t>(width),
                 .num_rows = static_cast<std::size_t>(from.shape()[0])},
                troupe::stream_of(first_gpu));
}

}  // namespace

TEST_CASE("the ends of rows of any length are copied out and back") {
  for (auto columns : {std::int64_t{7}, std::int64_t{4096}, beyond})
    for (std::int64_t rows : {1, 2}) {
      CAPTURE(rows, columns);
      auto from = rows_with_ends(rows, columns);
      auto ends = tensor::empty({rows, 3}, dtype::u8, first_gpu);
      copy_columns(from, columns - 3, 3, ends, 0);
      std::vector<std::uint8_t> expected;
      for (std::int64_t row = 0; row < rows; ++row)
        expected.insert(expected.end(), {2, 3, static_cast<std::uint8_t>(10 * row)});
      CHECK(same_bits(ends, tensor::from(expected, {rows, 3})));

      copy_columns(ends, 0, 3, from, 2);
      auto again = tensor::empty({rows, 5}, dtype::u8, first_gpu);
      copy_columns(from, 0, 5, again, 0);
      expected.clear();
      for (std::int64_t row = 0; row < rows; ++row) {
        auto number = static_cast<std::uint8_t>(10 * row);
        expected.insert(expected.end(), {number, 1, 2, 3, number});
      }
      CHECK(same_bits(again, tensor::from(expected, {rows, 5})));
    }
}

TEST_CASE("whole rows and no rows at all are copied") {
  auto from = rows_with_ends(5, 8), to = tensor::zeros({5, 8}, dtype::u8, first_gpu);
  copy_columns(from, 0, 0, to, 0);
  CHECK(same_bits(to, tensor::zeros({5, 8}, dtype::u8)));
  copy_columns(from, 0, 8, to, 0);
  CHECK(same_bits(to, from));
}
