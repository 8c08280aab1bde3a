#include "troupe/pipeline/detail/parameters/compressed_gradients.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "troupe/gradients/dense_gradient.hpp"
#include "troupe/gradients/factored_gradient.hpp"
#include "troupe/gradients/sparse_gradient.hpp"

namespace troupe::detail {
namespace {

/// As in PyTorch's PowerSGDState: less does not pay for the products.
constexpr double least_saving = 2;

std::vector<parameter*> parameters_in(const std::vector<named_parameter>& parameters) {
  std::vector<parameter*> targets;
  for (const auto& each : parameters) targets.push_back(each.target);
  return targets;
}

/// Null for a parameter whose gradient has no bucket of its own.
std::unique_ptr<gradients::gradient_compressor> compressor_for(const replica_exchange_options& exchange,
                                                               const named_parameter& one) {
  if (!one.target->requires_gradient || !is_large(*one.target)) return nullptr;
  if (exchange.top_k_gradients > 0)
    return std::make_unique<gradients::sparse_gradient>(exchange.top_k_gradients, one.target->extents,
                                                        one.name);
  if (auto factors = power_sgd_factors_of(*one.target, exchange.power_sgd_rank); factors.rank > 0)
    return std::make_unique<gradients::factored_gradient>(factors, one.name);
  return std::make_unique<gradients::dense_gradient>(exchange.gradient_sync);
}

std::vector<std::unique_ptr<gradients::gradient_compressor>> compressors_for(
    const replica_exchange_options& exchange, const std::vector<named_parameter>& parameters) {
  std::vector<std::unique_ptr<gradients::gradient_compressor>> result;
  for (const auto& each : parameters) result.push_back(compressor_for(exchange, each));
  return result;
}

/// Gradients move in blocks of several parameters, since each block needs a file descriptor.
constexpr std::int64_t least_block_elements = std::int64_t{4} << 20;
constexpr std::int64_t aligned_elements = 16;

std::int64_t padded_size_of(const parameter& one) {
  return (one.extents.num_elements() + aligned_elements - 1) / aligned_elements * aligned_elements;
}

/// Moves them to one new block of memory. The old memory is freed first: both together would be more than a
/// step needs.
void move_gradients(const std::vector<parameter*>& moved, const program::stage_program::memory_source& to) {
  std::vector<tensor> kept;
  std::int64_t num_elements = 0;
  for (auto* each : moved) {
    kept.push_back(each->has_gradient ? each->gradient().clone() : tensor());
    each->gradient() = {};
    num_elements += padded_size_of(*each);
  }
  tensor block;
  try {
    block = to({num_elements}, dtype::f32);
  } catch (...) {
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i]->gradient() = kept[i].defined() ? kept[i] : tensor::zeros(moved[i]->extents);
    throw;
  }
  std::int64_t next = 0;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    auto& gradient = moved[i]->gradient();
    gradient = block.rows(next, moved[i]->extents.num_elements()).reshape(moved[i]->extents);
    if (kept[i].defined()) gradient.copy_from(kept[i]);
    next += padded_size_of(*moved[i]);
  }
}

}  // namespace

gradients::low_rank_factors power_sgd_factors_of(const parameter& one, int rank) {
  return one.requires_gradient && is_large(one) ? gradients::factors_of(one.extents, rank, least_saving)
                                                : gradients::low_rank_factors{};
}

void share_memory_of(const std::vector<parameter*>& parameters,
                     const program::stage_program::memory_source& shared) {
  std::vector<parameter*> next;
  std::int64_t num_elements = 0;
  for (auto* each : parameters) {
    if (each->gradient().device() != device{}) continue;
    next.push_back(each);
    num_elements += padded_size_of(*each);
    if (num_elements < least_block_elements) continue;
    move_gradients(std::exchange(next, {}), shared);
    num_elements = 0;
  }
  if (!next.empty()) move_gradients(next, shared);
}

compressed_gradients::compressed_gradients(const numeric_options& numerics,
                                           std::vector<named_parameter> parameters,
                                           const std::vector<std::size_t>& by_use, bucket_owners owners)
    : parameters_(std::move(parameters)),
      of_packed_(std::make_unique<gradients::dense_gradient>(numerics.exchange.gradient_sync)),
      compressors_(compressors_for(numerics.exchange, parameters_)),
      buckets_(
          parameters_in(parameters_), by_use,
          [this](std::size_t index) { return compressors_[index]->num_rounds(); }, std::move(owners)),
      had_gradient_(parameters_.size(), false) {}

gradients::gradient_compressor& compressed_gradients::compressor_of(int bucket) const {
  return buckets_.is_packed(bucket) ? *of_packed_ : *compressors_[buckets_.part_of(bucket).index];
}

gradients::gradient_part compressed_gradients::part_of(int bucket) const {
  if (buckets_.is_packed(bucket)) return {};
  const auto& part = buckets_.part_of(bucket);
  return {part.first, part.count, buckets_.round_of(bucket)};
}

tensor compressed_gradients::message_of(int bucket) {
  auto& compressor = compressor_of(bucket);
  auto elements = [&] {
    auto found = buckets_.elements_of(bucket);
    return compressor.takes_any_device() ? found : found.to({});
  };
  if (buckets_.is_packed(bucket)) return compressor.message_of({}, elements());
  auto index = buckets_.part_of(bucket).index;
  auto part = part_of(bucket);
  if (part.round == 0) had_gradient_[index] = parameters_[index].target->has_gradient;
  return compressor.message_of(part, had_gradient_[index] ? elements() : tensor());
}

std::vector<tensor> compressed_gradients::sums_from(int bucket, const std::vector<tensor>& received) {
  return compressor_of(bucket).sums_from(part_of(bucket), received);
}

void compressed_gradients::end_step() {
  had_gradient_.assign(parameters_.size(), false);
  for (const auto& each : compressors_)
    if (each) each->end_step();
}

std::vector<named_tensor> compressed_gradients::state() const {
  std::vector<named_tensor> result;
  for (const auto& each : compressors_)
    if (each) {
      std::ranges::move(each->state(), std::back_inserter(result));
      std::ranges::move(each->shared_state(), std::back_inserter(result));
    }
  return result;
}

}  // namespace troupe::detail
