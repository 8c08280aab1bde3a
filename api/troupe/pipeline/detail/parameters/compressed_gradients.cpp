#include "troupe/pipeline/detail/parameters/compressed_gradients.hpp"

#include <utility>

#include "troupe/gradients/sparse_gradients.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe::detail {
namespace {

/// As in PyTorch's PowerSGDState: less does not pay for the products.
constexpr double least_saving = 2;

std::vector<parameter*> parameters_in(const std::vector<named_parameter>& parameters) {
  std::vector<parameter*> targets;
  for (const auto& each : parameters) targets.push_back(each.target);
  return targets;
}

std::map<std::size_t, gradients::factored_gradient> factored_of(
    int rank, const std::vector<named_parameter>& parameters) {
  std::map<std::size_t, gradients::factored_gradient> result;
  for (std::size_t index = 0; rank > 0 && index < parameters.size(); ++index) {
    const auto& [name, target] = parameters[index];
    auto factors = power_sgd_factors_of(*target, rank);
    if (factors.rank > 0) result.emplace(index, gradients::factored_gradient(factors, name));
  }
  return result;
}

/// Gradients move in blocks of several parameters, since each block needs a file descriptor.
constexpr std::int64_t least_block_elements = std::int64_t{4} << 20;
constexpr std::int64_t aligned_elements = 16;

std::int64_t padded_size_of(const parameter& of) {
  return (of.extents.num_elements() + aligned_elements - 1) / aligned_elements * aligned_elements;
}

/// Moves them to one new block of memory. The old memory is freed first: both together would be more than a
/// step needs.
void move_gradients(const std::vector<parameter*>& of, const program::stage_program::memory_source& to) {
  std::vector<tensor> kept;
  std::int64_t num_elements = 0;
  for (auto* each : of) {
    kept.push_back(each->has_gradient ? each->gradient().clone() : tensor());
    each->gradient() = {};
    num_elements += padded_size_of(*each);
  }
  tensor block;
  try {
    block = to({num_elements}, dtype::f32);
  } catch (...) {
    for (std::size_t i = 0; i < of.size(); ++i)
      of[i]->gradient() = kept[i].defined() ? kept[i] : tensor::zeros(of[i]->extents);
    throw;
  }
  std::int64_t next = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    auto& gradient = of[i]->gradient();
    gradient = block.rows(next, of[i]->extents.num_elements()).reshape(of[i]->extents);
    if (kept[i].defined()) gradient.copy_from(kept[i]);
    next += padded_size_of(*of[i]);
  }
}

std::vector<tensor> in_f32(std::vector<tensor> sums) {
  for (auto& each : sums)
    if (each.dtype() != dtype::f32) each = cast(each, dtype::f32);
  return sums;
}

}  // namespace

gradients::low_rank_factors power_sgd_factors_of(const parameter& of, int rank) {
  return of.requires_gradient && is_large(of) ? gradients::factors_of(of.extents, rank, least_saving)
                                              : gradients::low_rank_factors{};
}

compressed_gradients::compressed_gradients(const numeric_options& numerics,
                                           std::vector<named_parameter> parameters,
                                           const std::vector<std::size_t>& by_use)
    : numerics_(numerics),
      parameters_(std::move(parameters)),
      factored_(factored_of(numerics.exchange.power_sgd_rank, parameters_)),
      buckets_(parameters_in(parameters_), by_use,
               [this](std::size_t index) { return factored_.contains(index); }),
      had_gradient_(parameters_.size(), false) {
  for (int bucket = 0; bucket < buckets_.count(); ++bucket)
    if (is_sparse(bucket)) {
      auto index = buckets_.part_of(bucket).index;
      residuals_.try_emplace(index, tensor::zeros(parameters_[index].target->extents));
    }
}

void compressed_gradients::share_memory(const program::stage_program::memory_source& shared) {
  if (has_shared_memory_ || numerics_.exchange.top_k_gradients > 0 ||
      numerics_.exchange.gradient_sync != dtype::f32)
    return;
  std::vector<parameter*> next;
  std::int64_t num_elements = 0;
  for (int bucket = 1; bucket < buckets_.count(); ++bucket)
    if (is_first_of_its_parameter(bucket) && !factored(bucket)) {
      auto* target = parameters_[buckets_.part_of(bucket).index].target;
      if (target->gradient().device() != device{}) continue;
      next.push_back(target);
      num_elements += padded_size_of(*target);
      if (num_elements < least_block_elements) continue;
      move_gradients(std::exchange(next, {}), shared);
      num_elements = 0;
    }
  if (!next.empty()) move_gradients(next, shared);
  has_shared_memory_ = true;
}

bool compressed_gradients::is_first_of_its_parameter(int bucket) const {
  return buckets_.is_packed(bucket - 1) ||
         buckets_.part_of(bucket - 1).index != buckets_.part_of(bucket).index;
}

/// Of the parameter whose bucket it is; null if it is not sent as factors.
gradients::factored_gradient* compressed_gradients::factored(int bucket) {
  if (buckets_.is_packed(bucket)) return nullptr;
  auto found = factored_.find(buckets_.part_of(bucket).index);
  return found == factored_.end() ? nullptr : &found->second;
}

tensor compressed_gradients::message_of(int bucket) {
  auto* factors = factored(bucket);
  if (!buckets_.is_packed(bucket) && (!factors || is_first_of_its_parameter(bucket))) {
    auto index = buckets_.part_of(bucket).index;
    had_gradient_[index] = parameters_[index].target->has_gradient;
  }
  if (factors) return factor_of(bucket, *factors);
  if (is_sparse(bucket)) return take_largest_of(bucket);
  auto elements = buckets_.elements_of(bucket);
  return numerics_.exchange.gradient_sync == dtype::f32 ? elements
                                                        : cast(elements, numerics_.exchange.gradient_sync);
}

/// What a replica without a gradient has held back waits for its next one.
tensor compressed_gradients::take_largest_of(int bucket) {
  const auto& part = buckets_.part_of(bucket);
  if (!had_gradient_[part.index]) return gradients::nothing_largest();
  return gradients::take_largest(buckets_.elements_of(bucket),
                                 optim::elements_of(residuals_.at(part.index), part),
                                 gradients::num_largest(numerics_.exchange.top_k_gradients, part.count));
}

tensor compressed_gradients::factor_of(int bucket, gradients::factored_gradient& factors) {
  if (is_first_of_its_parameter(bucket)) {
    bool has_one = had_gradient_[buckets_.part_of(bucket).index];
    return factors.first_factor(has_one ? buckets_.elements_of(bucket) : tensor());
  }
  return factors.has_first_sum() ? factors.second_factor() : tensor();
}

std::vector<tensor> compressed_gradients::sums_from(int bucket, const std::vector<tensor>& received) {
  if (is_sparse(bucket)) return {gradients::sum_of_largest(received, buckets_.part_of(bucket).count)};
  auto* factors = factored(bucket);
  if (!factors) return in_f32(received);
  if (!is_first_of_its_parameter(bucket)) return {factors->finish(received)};
  factors->take_first_sum(received);
  return {};
}

void compressed_gradients::end_step() {
  had_gradient_.assign(parameters_.size(), false);
  for (auto& [index, each] : factored_) each.discard();
}

std::vector<named_tensor> compressed_gradients::state() const {
  std::vector<named_tensor> result;
  for (const auto& [index, residual] : residuals_)
    result.push_back({"top_k.residual/" + parameters_[index].name, residual});
  for (const auto& [index, each] : factored_) {
    result.push_back({"power_sgd.residual/" + parameters_[index].name, each.residual()});
    result.push_back({"power_sgd.q/" + parameters_[index].name, each.q()});
  }
  return result;
}

}  // namespace troupe::detail
