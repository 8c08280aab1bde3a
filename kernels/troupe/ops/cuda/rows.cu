#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"
#include "troupe/tensor/async/deferred_reads.hpp"
#include "troupe/tensor/cuda/graph_capture.hpp"

// Rows by indices. Indices are checked on the GPU first, and the CPU waits for the check, so that nothing is
// written if one is out of range. Where the check is deferred (deferred_reads), and in a graph capture,
// which cannot wait, rows out of range are gathered as all-ones bits, which is NaN, and skipped when
// scattering.

namespace troupe::cuda {
namespace {

class index_list {
 public:
  explicit index_list(const tensor& x)
      : elements_(x.bytes().data()), size_(x.num_elements()), is_wide_(x.dtype() == dtype::i64) {}

  __device__ std::int64_t at(std::int64_t position) const {
    return is_wide_ ? static_cast<const std::int64_t*>(elements_)[position]
                    : static_cast<const std::int32_t*>(elements_)[position];
  }
  __host__ __device__ std::int64_t size() const { return size_; }

 private:
  const void* elements_;
  std::int64_t size_;
  bool is_wide_;
};

constexpr unsigned check_threads = 1024;

/// first_bad[0] = the first position whose index is not in [0, num_rows), or -1; first_bad[1] = that index.
__global__ void check_kernel(index_list indices, std::int64_t num_rows, std::int64_t* first_bad) {
  __shared__ std::int64_t of_threads[check_threads];
  auto first = indices.size();
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < indices.size(); i += check_threads) {
    auto index = indices.at(i);
    if (index < 0 || index >= num_rows) first = min(first, i);
  }
  of_threads[threadIdx.x] = first;
  for (auto half = check_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      of_threads[threadIdx.x] = min(of_threads[threadIdx.x], of_threads[threadIdx.x + half]);
  }
  if (threadIdx.x > 0) return;
  auto is_good = of_threads[0] == indices.size();
  first_bad[0] = is_good ? -1 : of_threads[0];
  first_bad[1] = is_good ? 0 : indices.at(of_threads[0]);
}

void require_in_range(std::string_view operation, const tensor& indices, std::int64_t num_rows) {
  if (capture_on(indices.device().index)) return;
  auto first_bad = tensor::empty({2}, dtype::i64, indices.device());
  launch(indices.device(), 1, check_threads, check_kernel, index_list(indices), num_rows,
         elements_of<std::int64_t>(first_bad));
  auto check = [operation = std::string(operation), num_rows](const tensor& here) {
    auto found = here.values<std::int64_t>();
    if (found[0] >= 0)
      throw_invalid(operation, "indices in [0, " + std::to_string(num_rows) + ")",
                    std::to_string(found[1]) + " at position " + std::to_string(found[0]));
  };
  if (!deferred_reads::defer(deferred_reads::content::checks, first_bad, check)) check(first_bad.to({}));
}

/// One thread block per row; threads copy words of type Word.
template <class Word>
__global__ void gather_kernel(const Word* values, std::int64_t num_rows, index_list indices,
                              std::int64_t row_words, Word* out) {
  auto row = indices.at(blockIdx.x);
  auto is_there = row >= 0 && row < num_rows;
  const auto* from = values + (is_there ? row : 0) * row_words;
  auto* to = out + blockIdx.x * row_words;
  Word ones;
  memset(&ones, 0xff, sizeof(ones));
  for (std::int64_t i = threadIdx.x; i < row_words; i += blockDim.x) to[i] = is_there ? from[i] : ones;
}

std::int64_t row_elements(const tensor& values) {
  std::int64_t elements = 1;
  for (int axis = 1; axis < values.shape().rank(); ++axis) elements *= values.shape()[axis];
  return elements;
}

template <class Word>
void gather_words(const tensor& values, const tensor& indices, std::int64_t row_bytes, tensor& out) {
  launch(values.device(), num_blocks(indices.num_elements()), 128, gather_kernel<Word>,
         elements_of<Word>(values), values.shape()[0], index_list(indices),
         row_bytes / static_cast<std::int64_t>(sizeof(Word)), elements_of<Word>(out));
}

void gather(std::string_view operation, const tensor& values, const tensor& indices, tensor& out) {
  require_in_range(operation, indices, values.shape()[0]);
  auto row_bytes = row_elements(values) * static_cast<std::int64_t>(size_bytes(values.dtype()));
  if (row_bytes == 0) return;
  if (row_bytes % 16 == 0 && is_aligned(values) && is_aligned(out))
    gather_words<uint4>(values, indices, row_bytes, out);
  else
    gather_words<unsigned char>(values, indices, row_bytes, out);
}

/// The positions at which an index occurs. Both are maxima, and 0 if it does not occur.
struct occurrences {
  unsigned long long first_from_end;  ///< the number of positions, less the first
  unsigned long long end;             ///< one past the last position
};

__global__ void find_kernel(index_list indices, std::int64_t num_rows, occurrences* of_rows) {
  auto position = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (position >= indices.size()) return;
  auto row = indices.at(position);
  if (row < 0 || row >= num_rows) return;
  atomicMax(&of_rows[row].first_from_end, static_cast<unsigned long long>(indices.size() - position));
  atomicMax(&of_rows[row].end, static_cast<unsigned long long>(position + 1));
}

/// The positions from `begin` on at which an index occurs, one bit each.
struct position_bits {
  static constexpr int rounds = 4, words = rounds * block_threads / warp_threads, size = words * 32;
  unsigned bits[words];

  __device__ void find(index_list indices, std::int64_t begin, std::int64_t end, std::int64_t wanted) {
    bool is_hit[rounds];
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
      auto at = begin + round * block_threads + threadIdx.x;
      is_hit[round] = at < end && indices.at(at) == wanted;
    }
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
      auto hits = __ballot_sync(~0U, is_hit[round]);
      if (threadIdx.x % warp_threads == 0) bits[(round * block_threads + threadIdx.x) / warp_threads] = hits;
    }
  }
};

/// Visits the positions of position_bits in ascending order.
class position_cursor {
 public:
  __device__ explicit position_cursor(const position_bits& positions)
      : positions_(positions), left_(positions.bits[0]) {}

  /// -1 behind the last one.
  __device__ int next() {
    while (left_ == 0 && word_ + 1 < position_bits::words) left_ = positions_.bits[++word_];
    if (left_ == 0) return -1;
    auto bit = __ffs(static_cast<int>(left_)) - 1;
    left_ &= left_ - 1;
    return word_ * 32 + bit;
  }

 private:
  const position_bits& positions_;
  int word_ = 0;
  unsigned left_;
};

/// sum += the rows at `positions`, in their order. A thread adds some columns of some rows at a time, so that
/// many loads are under way.
template <class T>
__device__ void add_rows(const position_bits& positions, const T* rows, std::int64_t columns, float* sum) {
  constexpr int num_columns = 4, num_rows = 4;
  for (std::int64_t first = threadIdx.x; first < columns; first += num_columns * block_threads) {
    auto column = [=](int i) { return first + i * static_cast<std::int64_t>(block_threads); };
    float totals[num_columns];
#pragma unroll
    for (int i = 0; i < num_columns; ++i) totals[i] = column(i) < columns ? sum[column(i)] : 0;
    position_cursor cursor(positions);
    int found[num_rows];
    do {
      float values[num_rows][num_columns];
#pragma unroll
      for (int row = 0; row < num_rows; ++row) found[row] = cursor.next();
#pragma unroll
      for (int row = 0; row < num_rows; ++row)
#pragma unroll
        for (int i = 0; i < num_columns; ++i)
          if (found[row] >= 0 && column(i) < columns)
            values[row][i] = as_float(rows[found[row] * columns + column(i)]);
#pragma unroll
      for (int row = 0; row < num_rows; ++row)
#pragma unroll
        for (int i = 0; i < num_columns; ++i)
          if (found[row] >= 0 && column(i) < columns) totals[i] += values[row][i];
    } while (found[num_rows - 1] >= 0);
#pragma unroll
    for (int i = 0; i < num_columns; ++i)
      if (column(i) < columns) sum[column(i)] = totals[i];
  }
}

/// Each thread block owns one row of the sum, searches the indices for it in ascending order, between its
/// first and its last position, and adds the rows it finds; threads own columns. If there are fewer indices
/// than rows (`by_position`), a block is assigned to a position instead, and owns the row of its index if
/// that is the index's first position. So sums have a fixed order without atomic additions.
template <class T>
__global__ void scatter_add_kernel(index_list indices, bool by_position, const occurrences* of_rows,
                                   const T* rows, std::int64_t columns, std::int64_t num_rows, float* sum) {
  __shared__ position_bits positions;
  std::int64_t block = blockIdx.x, wanted = by_position ? indices.at(block) : block;
  if (wanted < 0 || wanted >= num_rows) return;
  auto at = of_rows[wanted];
  auto first = indices.size() - static_cast<std::int64_t>(at.first_from_end),
       end = static_cast<std::int64_t>(at.end);
  if (end == 0 || (by_position && first != block)) return;
  for (; first < end; first += position_bits::size) {
    positions.find(indices, first, end, wanted);
    __syncthreads();
    add_rows(positions, rows + first * columns, columns, sum + wanted * columns);
    __syncthreads();  // the next positions replace these
  }
}

void scatter_add(std::string_view operation, const tensor& indices, const tensor& rows, tensor& sum,
                 gradient_mode mode) {
  auto num_rows = sum.shape()[0], num_indices = indices.num_elements();
  require_in_range(operation, indices, num_rows);
  if (mode == gradient_mode::assign) sum.fill_zero();
  auto by_position = num_indices < num_rows;
  auto of_rows = tensor::zeros({num_rows, 2}, dtype::i64, sum.device());
  launch(sum.device(), blocks_for(num_indices), block_threads, find_kernel, index_list(indices), num_rows,
         elements_of<occurrences>(of_rows));
  with_floating(rows.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(sum.device(), num_blocks(by_position ? num_indices : num_rows), block_threads,
           scatter_add_kernel<T>, index_list(indices), by_position, elements_of<occurrences>(of_rows),
           elements_of<T>(rows), row_elements(sum), num_rows, elements_of<float>(sum));
  });
}

}  // namespace

row_kernels rows() { return {.gather = gather, .scatter_add = scatter_add}; }

}  // namespace troupe::cuda
