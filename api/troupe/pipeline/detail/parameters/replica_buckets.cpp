#include "troupe/pipeline/detail/parameters/replica_buckets.hpp"

#include <algorithm>

#include "troupe/tensor/async/async_device_copy.hpp"

namespace troupe::detail {
replica_buckets::replica_buckets(std::vector<parameter*> parameters, const std::vector<std::size_t>& by_use,
                                 const std::function<int(std::size_t index)>& num_rounds,
                                 bucket_owners owners)
    : parameters_(std::move(parameters)),
      owners_(std::move(owners)),
      layout_(layout_of(parameters_, by_use, num_rounds, owners_)) {
  for (auto* each : parameters_)
    if (each->requires_gradient) trainable_.push_back(each);
}

std::optional<int> replica_buckets::owner_of(int bucket) const {
  if (owners_.num_replicas == 0) return {};
  return is_packed(bucket) ? bucket : owners_.of_parameter[part_of(bucket).index];
}

/// At least one element: what travels has some.
std::int64_t replica_buckets::size_of_packed(int bucket) const {
  return packed_bucket(bucket).num_elements +
         std::max<std::int64_t>(static_cast<std::int64_t>(trainable_.size()), 1);
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
  return {num_packed() + static_cast<int>(first - parts.begin()), static_cast<int>(end - first)};
}

tensor replica_buckets::elements_of(int bucket) const {
  if (is_packed(bucket)) return pack(bucket);
  const auto& part = part_of(bucket);
  auto& gradient = parameters_[part.index]->gradient_in_update();
  auto elements = in_a_row(gradient).rows(part.first, part.count);
  if (!parameters_[part.index]->has_gradient) elements.fill_zero();
  return elements;
}

/// The elements of small gradients, then for each parameter 1 if it has a gradient, else 0.
tensor replica_buckets::pack(int bucket) const {
  auto place = trainable_.empty() ? device() : trainable_.front()->place();
  auto packed = tensor::zeros({size_of_packed(bucket)}, dtype::f32, place);
  std::int64_t next = 0;
  for (auto index : this->packed(bucket)) {
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

void replica_buckets::set_elements(int bucket, const std::vector<tensor>& parts,
                                   const std::vector<parameter*>& parameters) const {
  auto target = is_packed(bucket) ? tensor::empty({size_of_packed(bucket)})
                                  : optim::elements_of(parameters[part_of(bucket).index]->attached_gradient(),
                                                       part_of(bucket));
  std::int64_t next = 0;
  for (const auto& part : parts) {
    target.rows(next, part.num_elements()).copy_from(async_device_copy(part, target.device()));
    next += part.num_elements();
  }
  if (is_packed(bucket)) unpack(bucket, target, parameters);
}

void replica_buckets::unpack(int bucket, const tensor& packed,
                             const std::vector<parameter*>& parameters) const {
  std::int64_t next = 0;
  for (auto index : this->packed(bucket)) {
    auto* each = parameters[index];
    auto count = each->extents.num_elements();
    auto& gradient = each->attached_gradient();
    if (count > 0)
      in_a_row(gradient).copy_from(async_device_copy(packed.rows(next, count), gradient.device()));
    next += count;
  }
  auto values = packed.values<float>();
  for (auto* each : parameters)
    if (each->requires_gradient) each->has_gradient = values[static_cast<std::size_t>(next++)] > 0;
}

}  // namespace troupe::detail
