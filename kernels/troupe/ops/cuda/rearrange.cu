#include <algorithm>

#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/alignment.hpp"
#include "troupe/ops/cuda/loops/divisor.cuh"
#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"
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

/// The result's axes, innermost first, with the steps through x, all in words.
struct permutation {
  static constexpr int max_axes = 12;
  int count = 0;
  std::int64_t extent[max_axes] = {};
  std::int64_t step[max_axes] = {};
  divisor<std::int64_t> by_extent[max_axes];

  /// Adds the next outer axis, unless its extent is 1; merges it with the one before if they are adjacent in
  /// both tensors. Returns whether there is place for it.
  bool add(std::int64_t next_extent, std::int64_t next_step) {
    if (next_extent == 1) return true;
    auto is_adjacent = count > 0 && next_step == step[count - 1] * extent[count - 1];
    if (!is_adjacent && count == max_axes) return false;
    auto at = is_adjacent ? count - 1 : count++;
    step[at] = is_adjacent ? step[at] : next_step;
    extent[at] = is_adjacent ? extent[at] * next_extent : next_extent;
    by_extent[at] = divisor<std::int64_t>(extent[at]);
    return true;
  }

  __device__ std::int64_t source_of(std::int64_t index) const {
    std::int64_t from = 0;
    int axis = 0;
    for (; axis < count - 1; ++axis) {
      auto rest = by_extent[axis].quotient(index);
      from += (index - rest * extent[axis]) * step[axis];
      index = rest;
    }
    return from + index * step[axis];
  }
};

/// In elements.
permutation permutation_of(const tensor& x, const std::vector<int>& axes) {
  std::vector<std::int64_t> steps(axes.size());
  std::int64_t step = 1;
  for (auto i = static_cast<int>(axes.size()); i-- > 0; step *= x.shape()[i])
    steps[static_cast<std::size_t>(i)] = step;
  permutation joined;
  for (auto at = axes.rbegin(); at != axes.rend(); ++at)
    if (!joined.add(x.shape()[*at], steps[static_cast<std::size_t>(*at)]))
      throw_invalid("transpose", "at most 12 groups of axes on a GPU", describe(x));
  return joined;
}

/// The elements that are moved as one word of up to 16 bytes: those of runs that stay together, if all runs
/// are aligned.
std::int64_t elements_in_word(const tensor& x, const permutation& axes, const tensor& y) {
  auto run = axes.count > 0 && axes.step[0] == 1 ? axes.extent[0] : 1;
  auto alignment = alignment_of(begin_of(x, run) | begin_of(y, run));
  return std::min<std::int64_t>(alignment, 16) / element_bytes(x);
}

/// `axes` in words of `elements`, which divide the extent of the first.
permutation in_words(const permutation& axes, std::int64_t elements) {
  if (elements == 1) return axes;
  permutation words;
  words.add(axes.extent[0] / elements, 1);
  for (int axis = 1; axis < axes.count; ++axis) words.add(axes.extent[axis], axes.step[axis] / elements);
  return words;
}

/// The words that a thread moves, each a block's length after the one before.
constexpr int words_at_once = 4;

template <class Word>
__global__ void permute_kernel(const __grid_constant__ permutation axes, std::int64_t size, const Word* x,
                               Word* y) {
  auto first = static_cast<std::int64_t>(blockIdx.x) * (words_at_once * block_threads) + threadIdx.x;
  Word words[words_at_once];
#pragma unroll
  for (int n = 0; n < words_at_once; ++n)
    if (auto i = first + n * block_threads; i < size) words[n] = x[axes.source_of(i)];
#pragma unroll
  for (int n = 0; n < words_at_once; ++n)
    if (auto i = first + n * block_threads; i < size) y[i] = words[n];
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
  auto size = x.num_elements() * element_bytes(x) / static_cast<std::int64_t>(sizeof(Word));
  auto blocks = swaps_last_two(axes) ? num_tiles(axes, size) : 0;
  if (blocks == 0 || blocks > max_blocks)
    return launch(x.device(), blocks_for(size, words_at_once * block_threads), block_threads,
                  permute_kernel<Word>, axes, size, elements_of<Word>(x), elements_of<Word>(y));
  launch(x.device(), num_blocks(blocks), tile_side * tile_rows, transpose_kernel<Word>, axes.extent[0],
         axes.extent[1], elements_of<Word>(x), elements_of<Word>(y));
}

void transpose(const tensor& x, const std::vector<int>& axes, tensor& y) {
  if (x.num_elements() == 0) return;
  auto joined = permutation_of(x, axes);
  auto elements = elements_in_word(x, joined, y);
  auto words = in_words(joined, elements);
  switch (elements * element_bytes(x)) {
    case 1:
      return transpose_words<std::uint8_t>(x, words, y);
    case 2:
      return transpose_words<std::uint16_t>(x, words, y);
    case 4:
      return transpose_words<std::uint32_t>(x, words, y);
    case 8:
      return transpose_words<std::uint64_t>(x, words, y);
    default:
      return transpose_words<uint4>(x, words, y);
  }
}

}  // namespace

rearrange_kernels rearrange() { return {.copy_range = copy_range, .concat = concat, .transpose = transpose}; }

}  // namespace troupe::cuda
