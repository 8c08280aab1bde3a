#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "troupe/ops/cpu/parallel.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"

namespace troupe::cpu {

/// A channel as f32: `num_runs` runs of `run_size` elements, one every `step`.
struct channel_runs {
  float* first = nullptr;
  std::int64_t num_runs = 0, run_size = 0, step = 0;
  float* run(std::int64_t index) const { return first + index * step; }
};

/// How many neighbouring channels are worked on together. One, where each has long runs in memory; more,
/// where they are short, since what is read from memory then belongs to several.
std::int64_t channels_in_group(const batch_norm_problem& of);

/// Channels [first, first + count) of x [batch, channels, size], `first` a multiple of `channels_in_group`:
/// in place if they are f32 with long runs, else each in one run, copied and converted.
class channel_group {
 public:
  channel_group(const batch_norm_problem& of, const tensor& x, std::int64_t first);
  std::int64_t first() const { return first_; }
  std::int64_t end() const { return first_ + count_; }

  /// Brings the elements in, or out.
  void read();
  void write();
  channel_runs runs(std::int64_t channel) const;

 private:
  bool in_place() const { return !room_.defined(); }
  float* row(std::int64_t channel) const { return runs(channel).first; }
  /// Where to convert the elements that the channels have in one image.
  std::span<float> line_room(std::int64_t image) const;

  batch_norm_problem of_;
  mutable tensor x_, room_;
  std::int64_t first_, count_;
};

/// Calls `body(first)` for the first channel of each group, on all the threads this thread may use.
template <class Body>
void for_each_group(const batch_norm_problem& of, const Body& body) {
  constexpr std::int64_t worth_a_thread = 16384;  // elements
  auto count = channels_in_group(of);
  auto elements = std::max<std::int64_t>(1, count * of.batch * of.size);
  parallel_for((of.channels + count - 1) / count, worth_a_thread / elements + 1,
               [&](std::int64_t group) { body(group * count); });
}

/// The sum over a channel of `block_sum(run, first, count)`, of at most 1024 elements of a run each, added in
/// order.
template <class BlockSum>
double sum_over_channel(const channel_runs& of, const BlockSum& block_sum) {
  constexpr std::int64_t most = 1024;
  double sum = 0;
  for (std::int64_t run = 0; run < of.num_runs; ++run)
    for (std::int64_t first = 0; first < of.run_size; first += most)
      sum += block_sum(run, first, std::min(most, of.run_size - first));
  return sum;
}

}  // namespace troupe::cpu
