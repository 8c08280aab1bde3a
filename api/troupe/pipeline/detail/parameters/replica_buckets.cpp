#include "troupe/pipeline/detail/parameters/replica_buckets.hpp"

#include <algorithm>

namespace troupe::detail {
replica_buckets::replica_buckets(std::vector<parameter*> parameters, const std::vector<std::size_t>& by_use,
                                 const std::function<int(std::size_t index)>& num_rounds)
    : parameters_(std::move(parameters)), layout_(layout_of(parameters_, by_use, num_rounds)) {
  for (auto* each : parameters_)
    if (each->requires_gradient) trainable_.push_back(each);
  // At least one: what travels has elements.
  num_packed_ =
      layout_.num_small_elements + std::max<std::int64_t>(static_cast<std::int64_t>(trainable_.size()), 1);
}

int replica_buckets::round_of(int bucket) const {
  const auto& part = part_of(bucket);
  int round = 0;
  for (int before = bucket - 1; !is_packed(before) && part_of(before).index == part.index; --before)
    if (part_of(before).first == part.first) ++round;
  return round;
}

std::pair<int, int> replica_buckets::buckets_of(const parameter& whose) const {
  auto is_of = [&](const optim::parameter_part& each) { return parameters_[each.index] == &whose; };
  const auto& parts = layout_.large;
  auto first = std::ranges::find_if(parts, is_of);
  auto end = std::find_if_not(first, parts.end(), is_of);
  return {static_cast<int>(first - parts.begin()) + 1, static_cast<int>(end - first)};
}

tensor replica_buckets::elements_of(int bucket) const {
  if (is_packed(bucket)) return pack();
  const auto& part = part_of(bucket);
  auto& gradient = parameters_[part.index]->gradient_in_update();
  auto elements = in_a_row(gradient).rows(part.first, part.count);
  if (!parameters_[part.index]->has_gradient) elements.fill_zero();
  return elements;
}

/// The elements of small gradients, then for each parameter 1 if it has a gradient, else 0.
tensor replica_buckets::pack() const {
  auto place = trainable_.empty() ? device() : trainable_.front()->gradient_in_update().device();
  auto packed = tensor::zeros({num_packed_}, dtype::f32, place);
  std::int64_t next = 0;
  for (auto index : layout_.small) {
    auto* each = parameters_[index];
    auto count = each->extents.num_elements();
    if (each->has_gradient && count > 0)
      packed.rows(next, count).copy_from(in_a_row(each->gradient_in_update()));
    next += count;
  }
  std::vector<float> has_gradient;
  for (const auto* each : trainable_) has_gradient.push_back(each->has_gradient ? 1 : 0);
  auto count = static_cast<std::int64_t>(has_gradient.size());
  if (count > 0) packed.rows(next, count).copy_from(tensor::from(has_gradient, {count}));
  return packed;
}

void replica_buckets::set_elements(int bucket, const std::vector<tensor>& parts) const {
  auto target =
      is_packed(bucket)
          ? tensor::empty({num_packed_})
          : optim::elements_of(parameters_[part_of(bucket).index]->gradient_in_update(), part_of(bucket));
  std::int64_t next = 0;
  for (const auto& part : parts) {
    target.rows(next, part.num_elements()).copy_from(part);
    next += part.num_elements();
  }
  if (is_packed(bucket)) unpack(target);
}

void replica_buckets::unpack(const tensor& packed) const {
  std::int64_t next = 0;
  for (auto index : layout_.small) {
    auto* each = parameters_[index];
    auto count = each->extents.num_elements();
    if (count > 0) in_a_row(each->gradient_in_update()).copy_from(packed.rows(next, count));
    next += count;
  }
  auto values = packed.values<float>();
  for (auto* each : trainable_) each->has_gradient = values[static_cast<std::size_t>(next++)] > 0;
}

}  // namespace troupe::detail
