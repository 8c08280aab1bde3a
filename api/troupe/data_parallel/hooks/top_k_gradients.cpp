#include "troupe/data_parallel/hooks/top_k_gradients.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "troupe/data_parallel/detail/dense_reduction.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/gradients/largest_magnitudes.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe {
namespace {

/// A replica's message is i32 [2, k]: indices in the bucket, and the bits of the values.
class gathered_messages : public bucket_reduction {
 public:
  gathered_messages(gradient_bucket& bucket, communicator& group, const tensor& own, std::int64_t k)
      : bucket_(bucket),
        k_(static_cast<std::size_t>(k)),
        all_(tensor::empty({2 * k * bucket.replicas->num_leaves()}, dtype::i32)) {
    std::vector<std::int64_t> parts;
    for (int member = 0; member < group.size(); ++member)
      parts.push_back(static_cast<std::int64_t>(bucket.replicas->leaves_of(member).size()) * 2 * k);
    gathered_ = group.all_gather(own, all_, std::move(parts));
  }

  bool proceed() override {
    gathered_.wait();
    bucket_.sum.fill_zero();
    auto sum = bucket_.sum.values<float>();
    auto messages = all_.values<std::int32_t>();
    for (std::size_t first = 0; first < messages.size(); first += 2 * k_)
      for (std::size_t i = first; i < first + k_; ++i)
        sum[static_cast<std::size_t>(messages[i])] += std::bit_cast<float>(messages[i + k_]);
    return false;
  }

 private:
  gradient_bucket& bucket_;
  std::size_t k_;
  tensor all_;  // [replicas, 2, k]
  work gathered_;
};

}  // namespace

top_k_gradients::top_k_gradients(const top_k_gradients_options& options) : options_(options) {
  if (!(options.ratio > 0 && options.ratio <= 1))
    throw_invalid("top_k_gradients", "0 < ratio <= 1", std::to_string(options.ratio));
  if (!(options.momentum >= 0 && options.momentum < 1))
    throw_invalid("top_k_gradients", "0 <= momentum < 1", std::to_string(options.momentum));
  if (options.min_compressed_elements < 0)
    throw_invalid("top_k_gradients", "min_compressed_elements >= 0",
                  std::to_string(options.min_compressed_elements));
  if (options.dense_steps < 0)
    throw_invalid("top_k_gradients", "dense_steps >= 0", std::to_string(options.dense_steps));
}

void top_k_gradients::prepare(const std::vector<gradient_bucket>& buckets) {
  for (const auto& each : buckets) {
    detail::require_on_cpu(each, "top_k_gradients");
    if (each.sum.num_elements() > std::numeric_limits<std::int32_t>::max())
      throw_invalid("top_k_gradients", "at most 2^31 - 1 elements in a bucket", describe(each.sum));
  }
  residuals_.prepare(buckets);
  if (options_.momentum > 0) velocities_.prepare(buckets);
}

std::int64_t top_k_gradients::num_sent(const bucket_part& part) const {
  auto count = part.extents.num_elements();
  if (count < options_.min_compressed_elements) return count;
  auto wanted = static_cast<std::int64_t>(std::ceil(options_.ratio * static_cast<double>(count)));
  return std::clamp<std::int64_t>(wanted, std::min<std::int64_t>(1, count), count);
}

std::unique_ptr<bucket_reduction> top_k_gradients::begin(gradient_bucket& bucket, communicator& group) {
  steps_.on_begin(bucket);
  if (steps_.begun() <= options_.dense_steps) {
    take_all(bucket);
    return detail::all_reduce_dense(bucket, group);
  }
  std::int64_t k = 0;
  for (const auto& part : bucket.parts) k += num_sent(part);
  auto own = tensor::empty({static_cast<std::int64_t>(bucket.leaves.size()) * 2 * k}, dtype::i32);
  for (std::size_t leaf = 0; leaf < bucket.leaves.size(); ++leaf) {
    auto size = static_cast<std::size_t>(2 * k);
    take_largest(bucket, leaf, own.values<std::int32_t>().subspan(leaf * size, size));
  }
  return std::make_unique<gathered_messages>(bucket, group, own, k);
}

void top_k_gradients::accumulate(const gradient_bucket& bucket, std::size_t leaf) {
  if (options_.momentum == 0) return axpy(1, bucket.leaves[leaf], residuals_.of(bucket, leaf));
  const auto& velocity = velocities_.of(bucket, leaf);
  scale(velocity, static_cast<float>(options_.momentum));
  axpy(1, bucket.leaves[leaf], velocity);
  axpy(1, velocity, residuals_.of(bucket, leaf));
}

/// Sends all elements: residuals become zero, velocities are kept as in an optimizer.
void top_k_gradients::take_all(gradient_bucket& bucket) {
  for (std::size_t i = 0; i < bucket.leaves.size(); ++i) {
    if (!all_finite({&bucket.leaves[i], 1})) continue;
    accumulate(bucket, i);
    auto residual = residuals_.of(bucket, i);
    bucket.leaves[i].copy_from(residual);
    residual.fill_zero();
  }
}

void top_k_gradients::take_largest(const gradient_bucket& bucket, std::size_t leaf,
                                   std::span<std::int32_t> message) {
  bool is_finite = all_finite({&bucket.leaves[leaf], 1});
  if (is_finite) accumulate(bucket, leaf);
  auto residual = residuals_.of(bucket, leaf);
  auto unsent = residual.values<float>();
  auto velocity = options_.momentum > 0 ? velocities_.of(bucket, leaf) : tensor();
  std::size_t next = 0, k = message.size() / 2;
  for (const auto& part : bucket.parts) {
    auto first = static_cast<std::size_t>(part.first);
    auto values = unsent.subspan(first, static_cast<std::size_t>(part.extents.num_elements()));
    auto count = static_cast<std::size_t>(num_sent(part));
    for (auto index : gradients::largest_magnitudes(values, count)) {
      auto position = first + static_cast<std::size_t>(index);
      auto value = is_finite ? unsent[position] : std::numeric_limits<float>::quiet_NaN();
      message[next] = static_cast<std::int32_t>(position);
      message[k + next++] = std::bit_cast<std::int32_t>(value);
      if (!is_finite) continue;
      unsent[position] = 0;
      if (velocity.defined() && count < values.size()) velocity.values<float>()[position] = 0;
    }
  }
}

std::vector<named_tensor> top_k_gradients::state() {
  std::vector<named_tensor> result{{"top_k.steps", steps_.value()}};
  residuals_.add_state(result);
  if (options_.momentum > 0) velocities_.add_state(result);
  return result;
}

}  // namespace troupe
