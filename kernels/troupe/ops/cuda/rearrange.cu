#include <numeric>

#include "troupe/ops/cuda/elements.cuh"
#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/launch.cuh"
#include "troupe/tensor/cuda/pitched_copy.hpp"

namespace troupe::cuda {
namespace {

std::int64_t element_bytes(const tensor& x) { return static_cast<std::int64_t>(size_bytes(x.dtype())); }

void copy_range(const tensor& from, std::int64_t from_first, tensor& to, std::int64_t to_first,
                std::int64_t count) {
  auto step = from.shape()[2] * element_bytes(from), runs = from.shape()[0];
  if (count * step * runs == 0) return;
  auto& owner = gpu_at(to.device().index);
  gpu_scope scope(owner.index());
  auto pitch = [step](const tensor& x) { return static_cast<std::size_t>(x.shape()[1] * step); };
  queue({.to = to.bytes().data() + to_first * step,
         .to_pitch_bytes = pitch(to),
         .from = from.bytes().data() + from_first * step,
         .from_pitch_bytes = pitch(from),
         .width_bytes = static_cast<std::size_t>(count * step),
         .num_rows = static_cast<std::size_t>(runs)},
        owner.stream());
}

void concat(std::span<const tensor> parts, tensor& to) {
  std::int64_t first = 0;
  for (const auto& part : parts) {
    copy_range(part, 0, to, first, part.shape()[1]);
    first += part.shape()[1];
  }
}

/// The result's axes, innermost first, with the steps through x.
struct permutation {
  static constexpr int max_axes = 12;
  int count = 0;
  std::int64_t extent[max_axes] = {};
  std::int64_t step[max_axes] = {};

  __device__ std::int64_t source_of(std::int64_t index) const {
    std::int64_t from = 0;
    for (int axis = 0; axis < count; ++axis) {
      auto rest = index / extent[axis];
      from += (index - rest * extent[axis]) * step[axis];
      index = rest;
    }
    return from;
  }
};

/// Removes axes of extent 1 and merges axes that are adjacent in both tensors.
permutation permutation_of(const tensor& x, const std::vector<int>& axes) {
  std::vector<std::int64_t> steps(axes.size());
  std::int64_t step = 1;
  for (auto i = static_cast<int>(axes.size()); i-- > 0; step *= x.shape()[i])
    steps[static_cast<std::size_t>(i)] = step;
  permutation joined;
  for (auto at = axes.rbegin(); at != axes.rend(); ++at) {
    auto extent = x.shape()[*at], through = steps[static_cast<std::size_t>(*at)];
    auto last = joined.count - 1;
    if (extent == 1) continue;
    if (last >= 0 && through == joined.step[last] * joined.extent[last]) {
      joined.extent[last] *= extent;
      continue;
    }
    if (joined.count == permutation::max_axes)
      throw_invalid("transpose", "at most 12 groups of axes on a GPU", describe(x));
    joined.extent[joined.count] = extent;
    joined.step[joined.count++] = through;
  }
  return joined;
}

template <class Word>
__global__ void permute_kernel(const __grid_constant__ permutation axes, std::int64_t size, const Word* x,
                               Word* y) {
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) y[i] = x[axes.source_of(i)];
}

constexpr unsigned tile_side = 32, tile_rows = 8;

/// y [batch, columns, rows] from x [batch, rows, columns], tiles through shared memory, so that both are read
/// and written in runs. blockIdx.x counts tiles of columns, then of rows, then matrices.
template <class Word>
__global__ void transpose_kernel(std::int64_t rows, std::int64_t columns, const Word* x, Word* y) {
  __shared__ Word tile[tile_side][tile_side + 1];
  auto across = (columns + tile_side - 1) / tile_side, down = (rows + tile_side - 1) / tile_side;
  auto index = static_cast<std::int64_t>(blockIdx.x);
  auto left = index % across * tile_side, top = index / across % down * tile_side;
  auto first = index / across / down * rows * columns;
  auto lane = threadIdx.x % tile_side, line = threadIdx.x / tile_side;
  for (auto i = line; i < tile_side; i += tile_rows)
    if (top + i < rows && left + lane < columns) tile[i][lane] = x[first + (top + i) * columns + left + lane];
  __syncthreads();
  for (auto i = line; i < tile_side; i += tile_rows)
    if (left + i < columns && top + lane < rows) y[first + (left + i) * rows + top + lane] = tile[lane][i];
}

/// Whether, after merging, y's axes are x's with the last two swapped.
bool swaps_last_two(const permutation& axes) {
  if (axes.count < 2 || axes.count > 3 || axes.step[1] != 1 || axes.step[0] != axes.extent[1]) return false;
  return axes.count == 2 || axes.step[2] == axes.extent[0] * axes.extent[1];
}

/// Of all matrices of `size` elements whose last two axes are swapped.
std::int64_t num_tiles(const permutation& axes, std::int64_t size) {
  auto rows = axes.extent[0], columns = axes.extent[1];
  auto tiles = [](std::int64_t extent) { return (extent + tile_side - 1) / tile_side; };
  return size / (rows * columns) * tiles(rows) * tiles(columns);
}

template <class Word>
void transpose_words(const tensor& x, const permutation& axes, tensor& y) {
  auto size = x.num_elements();
  auto blocks = swaps_last_two(axes) ? num_tiles(axes, size) : 0;
  if (blocks == 0 || blocks > max_blocks)
    return launch(x.device(), blocks_for(size), block_threads, permute_kernel<Word>, axes, size,
                  elements_of<Word>(x), elements_of<Word>(y));
  launch(x.device(), num_blocks(blocks), tile_side * tile_rows, transpose_kernel<Word>, axes.extent[0],
         axes.extent[1], elements_of<Word>(x), elements_of<Word>(y));
}

void transpose(const tensor& x, const std::vector<int>& axes, tensor& y) {
  if (x.num_elements() == 0) return;
  auto joined = permutation_of(x, axes);
  switch (element_bytes(x)) {
    case 1:
      return transpose_words<std::uint8_t>(x, joined, y);
    case 2:
      return transpose_words<std::uint16_t>(x, joined, y);
    case 4:
      return transpose_words<std::uint32_t>(x, joined, y);
    default:
      return transpose_words<std::uint64_t>(x, joined, y);
  }
}

}  // namespace

rearrange_kernels rearrange() { return {.copy_range = copy_range, .concat = concat, .transpose = transpose}; }

}  // namespace troupe::cuda
