#include "support/cuda_emulation/execution/warp_matrix.hpp"

#include <bit>
#include <cstring>

#include "support/cuda_emulation/execution/fault.hpp"
#include "support/cuda_emulation/execution/warp.hpp"
#include "troupe/tensor/half.hpp"

// Which lane holds which element: PTX ISA, "Matrix Fragments for mma.m16n8k16", the same for mma.m16n8k8, and
// "ldmatrix". A lane's group is lane / 4 and its place in the group lane % 4.

namespace troupe::emulation {
namespace {

constexpr int rows = 16, columns = 8, most_depth = 16;

/// The operands of one lane in mma.
struct fragments {
  std::uint32_t left[4], right[2];
  float sums[4];
};
static_assert(sizeof(fragments) <= warp::most_bytes);
static_assert(rows * columns == warp::result_floats);

int sum_row(unsigned lane, int i) { return static_cast<int>(lane) / 4 + i / 2 * 8; }
int sum_column(unsigned lane, int i) { return static_cast<int>(lane) % 4 * 2 + i % 2; }

template <class Factor>
float half_of(std::uint32_t word, int half) {
  Factor value;
  value.bits = static_cast<std::uint16_t>(word >> 16 * half);
  return static_cast<float>(value);
}

struct matrices {
  int depth = 0;
  float left[rows][most_depth], right[most_depth][columns], sums[rows][columns];
};

template <class Factor>
void place_factors(unsigned lane, const fragments& from, matrices& in) {
  in.depth = 16;
  auto group = lane / 4, first = lane % 4 * 2;
  for (int half = 0; half < 2; ++half) {
    auto at = first + static_cast<unsigned>(half);
    for (unsigned word = 0; word < 4; ++word)
      in.left[group + word % 2 * 8][at + word / 2 * 8] = half_of<Factor>(from.left[word], half);
    for (unsigned word = 0; word < 2; ++word)
      in.right[at + word * 8][group] = half_of<Factor>(from.right[word], half);
  }
}

/// In TF32: the lowest 13 bits are not looked at.
float tf32_of(std::uint32_t word) { return std::bit_cast<float>(word & ~std::uint32_t{0x1FFF}); }

void place_tf32(unsigned lane, const fragments& from, matrices& in) {
  in.depth = 8;
  auto group = lane / 4, at = lane % 4;
  for (unsigned word = 0; word < 4; ++word)
    in.left[group + word % 2 * 8][at + word / 2 * 4] = tf32_of(from.left[word]);
  for (unsigned word = 0; word < 2; ++word) in.right[at + word * 4][group] = tf32_of(from.right[word]);
}

/// Computes the whole product; called by the last lane that arrives.
template <auto place>
void multiply(warp::exchange& of) {
  matrices all;
  for (unsigned lane = 0; lane < num_lanes; ++lane) {
    fragments from;
    std::memcpy(&from, of.values + lane * sizeof(from), sizeof(from));
    place(lane, from, all);
    for (int i = 0; i < 4; ++i) all.sums[sum_row(lane, i)][sum_column(lane, i)] = from.sums[i];
  }
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < all.depth; ++k)
      for (int column = 0; column < columns; ++column)
        all.sums[row][column] += all.left[row][k] * all.right[k][column];
  std::memcpy(of.result, all.sums, sizeof(all.sums));
}

using product = void (*)(warp::exchange&);

product product_of(factor_type type) {
  if (type == factor_type::tf32) return multiply<place_tf32>;
  return type == factor_type::bf16 ? product(multiply<place_factors<bfloat16>>)
                                   : multiply<place_factors<float16>>;
}

}  // namespace

void load_matrices(const call& by, matrix_form form, std::uint32_t (&words)[4], const void* row) {
  if (auto rest = reinterpret_cast<std::uintptr_t>(row) % 16; rest != 0)
    fail(by, "expected the address of a row that is a multiple of 16 bytes, got one " + std::to_string(rest) +
                 " bytes further");
  const auto& all = exchange_in_warp(all_lanes, by, &row, sizeof(row));
  auto lane = lane_index();
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      auto from = lane / 4, column = lane % 4 * 2 + i;
      if (form == matrix_form::transposed) std::swap(from, column);
      const std::byte* first;
      std::memcpy(&first, all.values + (matrix * 8 + from) * sizeof(first), sizeof(first));
      std::memcpy(&pair[i], first + column * sizeof(pair[i]), sizeof(pair[i]));
    }
    words[matrix] = std::bit_cast<std::uint32_t>(pair);
  }
}

void multiply_matrices(const call& by, factor_type type, const std::uint32_t (&left)[4],
                       std::uint32_t right_0, std::uint32_t right_1, float* sums) {
  fragments mine{{left[0], left[1], left[2], left[3]}, {right_0, right_1}, {}};
  std::memcpy(mine.sums, sums, sizeof(mine.sums));
  const auto& all = exchange_in_warp(all_lanes, by, &mine, sizeof(mine), product_of(type));
  auto lane = lane_index();
  for (int i = 0; i < 4; ++i) sums[i] = all.result[sum_row(lane, i) * columns + sum_column(lane, i)];
}

}  // namespace troupe::emulation
