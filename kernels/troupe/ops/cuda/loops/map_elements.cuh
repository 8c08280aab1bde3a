#pragma once
#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"

namespace troupe::cuda {

template <class T, class Function, class... Packs>
__device__ pack<T> map_lanes(Function function, const Packs&... from) {
  pack<T> result;
#pragma unroll
  for (int lane = 0; lane < pack<T>::size; ++lane)
    result.lanes[lane] = rounded<T>(function(as_float(from.lanes[lane])...));
  return result;
}

/// One thread per pack; the last pack, and unaligned tensors, element by element.
template <class Function, class T, class... X>
__global__ void map_kernel(Function function, std::int64_t size, bool are_aligned, T* y, const X*... x) {
  auto first = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * pack<T>::size;
  if (are_aligned && first + pack<T>::size <= size) {
    store_pack(y + first, map_lanes<T>(function, load_pack(x + first)...));
    return;
  }
  for (auto i = first; i < first + pack<T>::size && i < size; ++i)
    y[i] = rounded<T>(function(as_float(x[i])...));
}

/// y = function(x...) for each element, computed in f32; all of one shape, floating dtype and GPU. y may be
/// one of x.
template <class Function, class... Tensors>
void map_elements(Function function, tensor& y, const Tensors&... x) {
  auto size = y.num_elements();
  auto are_aligned = (is_aligned(y) && ... && is_aligned(x));
  with_floating(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto num_packs = (size + pack<T>::size - 1) / pack<T>::size;
    launch(y.device(), blocks_for(num_packs), block_threads,
           map_kernel<Function, T, decltype((void)x, T{})...>, function, size, are_aligned, elements_of<T>(y),
           elements_of<T>(x)...);
  });
}

}  // namespace troupe::cuda
