#pragma once
#include <utility>

#include "troupe/ops/cuda/loops/divisor.cuh"
#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"
#include "troupe/ops/kernels/batch_norm.hpp"

namespace troupe::cuda {

/// Where a flat index of [batch, channels, size] lies.
struct channel_layout {
  explicit channel_layout(const batch_norm_problem& problem)
      : channels(problem.channels),
        size(problem.size),
        by_channels(problem.channels),
        by_size(problem.size) {}

  std::int64_t channels, size;
  divisor<std::int64_t> by_channels, by_size;
};

/// The functions of a pack's elements, which may be of several channels.
template <class OfChannel, int Lanes>
class lane_functions {
 public:
  __device__ lane_functions(const channel_layout& layout, const OfChannel& of_channel, std::int64_t first)
      : layout_(layout), of_channel_(of_channel) {
    auto plane = layout.by_size.quotient(first);
    channel_ = plane - layout.by_channels.quotient(plane) * layout.channels;
    function_ = of_channel(channel_);
    next_plane_ = static_cast<int>(min((plane + 1) * layout.size - first, std::int64_t{Lanes}));
  }

  /// The function of lane `lane`; called for each lane in order.
  __device__ const auto& at(int lane) {
    if (lane == next_plane_) {
      channel_ = channel_ + 1 == layout_.channels ? 0 : channel_ + 1;
      function_ = of_channel_(channel_);
      next_plane_ += static_cast<int>(min(layout_.size, std::int64_t{Lanes}));
    }
    return function_;
  }

 private:
  const channel_layout& layout_;
  const OfChannel& of_channel_;
  std::int64_t channel_;
  decltype(std::declval<OfChannel>()(0)) function_;
  int next_plane_;  ///< the lane at which the next channel begins
};

/// One thread per pack. The last elements come first: those that the kernel before has used last may still be
/// in the cache.
template <class OfChannel, class T, class... X>
__global__ void map_channels_kernel(channel_layout layout, OfChannel of_channel, std::int64_t count,
                                    bool are_aligned, T* y, const X*... x) {
  constexpr int lanes = pack<T>::size;
  auto block = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x);
  auto first = (block * blockDim.x + threadIdx.x) * lanes;
  if (first >= count) return;
  lane_functions<OfChannel, lanes> functions(layout, of_channel, first);
  if (are_aligned && first + lanes <= count) {
    auto map = [&](const auto&... from) {
      pack<T> to;
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        to.lanes[lane] = rounded<T>(functions.at(lane)(as_float(from.lanes[lane])...));
      return to;
    };
    store_pack(y + first, map(load_pack(x + first)...));
    return;
  }
  for (int lane = 0; lane < lanes && first + lane < count; ++lane)
    y[first + lane] = rounded<T>(functions.at(lane)(as_float(x[first + lane])...));
}

/// y = of_channel(channel)(x...) for each element of y, [batch, channels, size], computed in f32; all of one
/// shape, floating dtype and GPU. y may be one of x.
template <class OfChannel, class... Tensors>
void map_channels(const batch_norm_problem& problem, OfChannel of_channel, tensor& y, const Tensors&... x) {
  auto count = y.num_elements();
  if (count == 0) return;
  auto are_aligned = (is_aligned(y) && ... && is_aligned(x));
  with_floating(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto num_packs = (count + pack<T>::size - 1) / pack<T>::size;
    launch(y.device(), blocks_for(num_packs), block_threads,
           map_channels_kernel<OfChannel, T, decltype((void)x, T{})...>, channel_layout(problem), of_channel,
           count, are_aligned, elements_of<T>(y), elements_of<T>(x)...);
  });
}

}  // namespace troupe::cuda
