#include <algorithm>
#include <cstring>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/loops/square_transpose.hpp"

namespace troupe::cpu {
namespace {

/// Bytes that one thread copies at a time.
constexpr std::int64_t bytes_in_block = 1 << 16;

std::int64_t element_bytes(const tensor& x) { return static_cast<std::int64_t>(size_bytes(x.dtype())); }

std::int64_t blocks_of(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

/// Copies are by bytes; four bytes count as one element of parallel_for.
std::int64_t elements_worth(std::int64_t bytes) { return bytes / 4; }

void copy_range(const tensor& from, std::int64_t from_first, tensor& to, std::int64_t to_first,
                std::int64_t count) {
  auto step = from.shape()[2] * element_bytes(from), size = count * step;
  if (size == 0) return;
  auto from_size = from.shape()[1] * step, to_size = to.shape()[1] * step;
  const auto* source = from.bytes().data() + from_first * step;
  auto* target = to.bytes().data() + to_first * step;
  // Splits long runs into blocks and groups short ones.
  auto block = std::min(size, bytes_in_block), blocks = blocks_of(size, block);
  auto runs = from.shape()[0], at_once = std::max<std::int64_t>(1, bytes_in_block / size);
  parallel_for(blocks_of(runs, at_once) * blocks, elements_worth(runs * size), [&](std::int64_t index) {
    auto first_run = index / blocks * at_once, first = index % blocks * block;
    auto bytes = static_cast<std::size_t>(std::min(block, size - first));
    for (auto run = first_run; run < std::min(first_run + at_once, runs); ++run)
      std::memcpy(target + run * to_size + first, source + run * from_size + first, bytes);
  });
}

/// Copies short runs of all parts in the order of the result, which is then written sequentially; long runs
/// part by part.
void concat(std::span<const tensor> parts, tensor& to) {
  auto step = to.shape()[2] * element_bytes(to), to_size = to.shape()[1] * step, runs = to.shape()[0];
  if (to_size > bytes_in_block) {
    std::int64_t first = 0;
    for (const auto& part : parts) {
      copy_range(part, 0, to, first, part.shape()[1]);
      first += part.shape()[1];
    }
    return;
  }
  if (to_size == 0) return;
  auto* target = to.bytes().data();
  auto at_once = bytes_in_block / to_size;
  parallel_for(blocks_of(runs, at_once), elements_worth(runs * to_size), [&](std::int64_t block) {
    auto* place = target + block * at_once * to_size;
    for (auto run = block * at_once; run < std::min((block + 1) * at_once, runs); ++run)
      for (const auto& part : parts) {
        auto size = part.shape()[1] * step;
        if (size > 0) std::memcpy(place, part.bytes().data() + run * size, static_cast<std::size_t>(size));
        place += size;
      }
  });
}

/// An axis of the result with its strides in both tensors.
struct axis {
  std::int64_t extent, from_step, to_step;
};

/// The result's axes, outermost first, without axes of extent 1; axes that are adjacent in both tensors are
/// merged.
std::vector<axis> axes_of(const tensor& x, const std::vector<int>& axes) {
  std::vector<std::int64_t> steps(axes.size());
  std::int64_t step = 1;
  for (auto i = static_cast<int>(axes.size()); i-- > 0; step *= x.shape()[i])
    steps[static_cast<std::size_t>(i)] = step;
  std::vector<axis> joined;
  for (auto i = axes.rbegin(); i != axes.rend(); ++i) {
    axis next{x.shape()[*i], steps[static_cast<std::size_t>(*i)], 1};
    if (next.extent == 1) continue;
    if (!joined.empty()) next.to_step = joined.back().to_step * joined.back().extent;
    if (!joined.empty() && next.from_step == joined.back().from_step * joined.back().extent)
      joined.back().extent *= next.extent;
    else
      joined.push_back(next);
  }
  if (joined.empty()) joined.push_back({1, 1, 1});
  return {joined.rbegin(), joined.rend()};
}

struct place {
  std::int64_t from = 0, to = 0;
};

/// The offsets at step `index` of a traversal of `axes`.
place place_of(std::int64_t index, const std::vector<axis>& axes) {
  place at;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    auto next = index / axis->extent, along = index - next * axis->extent;
    at.from += along * axis->from_step;
    at.to += along * axis->to_step;
    index = next;
  }
  return at;
}

std::int64_t size_of(const std::vector<axis>& axes) {
  std::int64_t size = 1;
  for (const auto& axis : axes) size *= axis.extent;
  return size;
}

/// The last axis of the result is the last of x: whole runs are copied.
template <class T>
void copy_runs(const T* from, T* to, std::vector<axis> axes) {
  auto run = axes.back();
  axes.pop_back();
  axis along{1, 0, 0};  // the runs that one thread copies lie along the next axis
  if (!axes.empty()) along = axes.back(), axes.pop_back();
  auto bytes = run.extent * static_cast<std::int64_t>(sizeof(T));
  auto together = std::clamp<std::int64_t>(bytes_in_block / bytes, 1, along.extent);
  auto groups = blocks_of(along.extent, together);
  parallel_for(size_of(axes) * groups, elements_worth(size_of(axes) * along.extent * bytes),
               [&](std::int64_t index) {
                 auto at = place_of(index / groups, axes);
                 auto first = index % groups * together, last = std::min(first + together, along.extent);
                 for (auto i = first; i < last; ++i)
                   std::memcpy(to + at.to + i * along.to_step, from + at.from + i * along.from_step,
                               static_cast<std::size_t>(bytes));
               });
}

/// to[j * to_step + i] = from[i * from_step + j] for i in [0, rows) and j in [0, columns).
template <class T>
void transpose_tile(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t rows,
                    std::int64_t columns) {
  constexpr auto side = square_side<T>;
  auto whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (std::int64_t j = 0; j < whole_columns; j += side)
    for (std::int64_t i = 0; i < whole_rows; i += side)
      transpose_square(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
  for (std::int64_t j = 0; j < columns; ++j)
    for (auto i = j < whole_columns ? whole_rows : 0; i < rows; ++i)
      to[j * to_step + i] = from[i * from_step + j];
}

/// x's last axis (`columns`) is not the result's (`rows`): copies tiles that fit into the L1 cache.
template <class T>
void transpose_tiles(const T* from, T* to, std::vector<axis> axes) {
  constexpr std::int64_t side = 64;
  auto rows = axes.back();
  axes.pop_back();
  auto last = std::ranges::find(axes, 1, &axis::from_step);
  auto columns = *last;
  axes.erase(last);
  auto row_tiles = blocks_of(rows.extent, side), column_tiles = blocks_of(columns.extent, side);
  auto elements = size_of(axes) * rows.extent * columns.extent;
  parallel_for(size_of(axes) * row_tiles * column_tiles, elements, [&](std::int64_t index) {
    auto row = index % row_tiles * side, column = index / row_tiles % column_tiles * side;
    auto at = place_of(index / row_tiles / column_tiles, axes);
    transpose_tile(from + at.from + row * rows.from_step + column, rows.from_step,
                   to + at.to + column * columns.to_step + row, columns.to_step,
                   std::min(side, rows.extent - row), std::min(side, columns.extent - column));
  });
}

template <class T>
void transpose_as(const tensor& x, const std::vector<int>& axes, tensor& y) {
  const auto* from = reinterpret_cast<const T*>(x.bytes().data());
  auto* to = reinterpret_cast<T*>(y.bytes().data());
  auto joined = axes_of(x, axes);
  joined.back().from_step == 1 ? copy_runs(from, to, std::move(joined))
                               : transpose_tiles(from, to, std::move(joined));
}

void transpose(const tensor& x, const std::vector<int>& axes, tensor& y) {
  switch (element_bytes(x)) {
    case 1:
      return transpose_as<std::uint8_t>(x, axes, y);
    case 2:
      return transpose_as<std::uint16_t>(x, axes, y);
    case 4:
      return transpose_as<std::uint32_t>(x, axes, y);
    default:
      return transpose_as<std::uint64_t>(x, axes, y);
  }
}

}  // namespace

rearrange_kernels rearrange() { return {.copy_range = copy_range, .concat = concat, .transpose = transpose}; }

}  // namespace troupe::cpu
