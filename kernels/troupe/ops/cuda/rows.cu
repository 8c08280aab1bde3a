#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/elements.cuh"
#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/launch.cuh"
#include "troupe/tensor/cuda/graph_capture.hpp"

// Rows by indices. Indices are checked on the GPU first, and the CPU waits for the check, so that nothing is
// written if one is out of range. A graph capture cannot wait: it gathers rows out of range as all-ones bits,
// which is NaN, and skips them when scattering.

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

/// first_bad[0] = the first position whose index is not in [0, num_rows), or -1; first_bad[1] = that index.
__global__ void check_kernel(index_list indices, std::int64_t num_rows, std::int64_t* first_bad) {
  __shared__ std::int64_t of_threads[block_threads];
  auto first = indices.size();
  for (std::int64_t i = threadIdx.x; i < indices.size() && i < first; i += block_threads)
    if (indices.at(i) < 0 || indices.at(i) >= num_rows) first = i;
  of_threads[threadIdx.x] = first;
  for (auto half = block_threads / 2; half > 0; half /= 2) {
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
  launch(indices.device(), 1, block_threads, check_kernel, index_list(indices), num_rows,
         elements_of<std::int64_t>(first_bad));
  auto here = first_bad.to({});
  auto found = here.values<std::int64_t>();
  if (found[0] >= 0)
    throw_invalid(operation, "indices in [0, " + std::to_string(num_rows) + ")",
                  std::to_string(found[1]) + " at position " + std::to_string(found[0]));
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

/// Each thread block owns one row of the sum, searches the indices for it in ascending order, and adds the
/// rows it finds; threads own columns. If there are fewer indices than rows (`by_position`), a block is
/// assigned to a position instead, and owns the row of its index if no earlier position has the same index.
/// So sums have a fixed order without atomics.
template <class T>
__global__ void scatter_add_kernel(index_list indices, bool by_position, const T* rows, std::int64_t columns,
                                   std::int64_t num_rows, float* sum) {
  __shared__ bool is_hit[block_threads];
  std::int64_t block = blockIdx.x, wanted = by_position ? indices.at(block) : block;
  if (wanted < 0 || wanted >= num_rows) return;
  if (by_position) {
    auto is_later = false;
    for (std::int64_t i = threadIdx.x; i < block && !is_later; i += block_threads)
      is_later = indices.at(i) == wanted;
    if (__syncthreads_or(is_later)) return;
  }
  auto start = by_position ? block : 0;
  for (auto first = start; first < indices.size(); first += block_threads) {
    auto mine = first + threadIdx.x;
    is_hit[threadIdx.x] = mine < indices.size() && indices.at(mine) == wanted;
    if (!__syncthreads_or(is_hit[threadIdx.x])) continue;
    for (unsigned i = 0; i < block_threads; ++i)
      if (is_hit[i])
        for (std::int64_t column = threadIdx.x; column < columns; column += block_threads)
          sum[wanted * columns + column] += as_float(rows[(first + i) * columns + column]);
    __syncthreads();
  }
}

void scatter_add(std::string_view operation, const tensor& indices, const tensor& rows, tensor& sum,
                 gradient_mode mode) {
  auto num_rows = sum.shape()[0], num_indices = indices.num_elements();
  require_in_range(operation, indices, num_rows);
  if (mode == gradient_mode::assign) sum.fill_zero();
  auto by_position = num_indices < num_rows;
  with_floating(rows.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(sum.device(), num_blocks(by_position ? num_indices : num_rows), block_threads,
           scatter_add_kernel<T>, index_list(indices), by_position, elements_of<T>(rows), row_elements(sum),
           num_rows, elements_of<float>(sum));
  });
}

}  // namespace

row_kernels rows() { return {.gather = gather, .scatter_add = scatter_add}; }

}  // namespace troupe::cuda
