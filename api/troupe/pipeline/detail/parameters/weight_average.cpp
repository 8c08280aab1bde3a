#include "troupe/pipeline/detail/parameters/weight_average.hpp"

#include <utility>

#include "troupe/ops/elementwise.hpp"

namespace troupe::detail {

weight_average::weight_average(int period, std::vector<parameter*> weights)
    : period_(period), weights_(std::move(weights)), layout_(layout_of(weights_)) {}

int weight_average::num_buckets() const {
  return static_cast<int>(layout_.large.size()) + (packed().num_elements > 0 ? 1 : 0);
}

tensor weight_average::values_of(int bucket) const {
  if (is_packed(bucket)) return pack();
  const auto& part = layout_.large.at(static_cast<std::size_t>(bucket));
  return optim::elements_of(weights_[part.index]->value(), part).to({});
}

void weight_average::take_sums(int bucket, const std::vector<tensor>& parts, int num_replicas) const {
  auto count =
      is_packed(bucket) ? packed().num_elements : layout_.large.at(static_cast<std::size_t>(bucket)).count;
  auto mean = tensor::empty({count});
  std::int64_t next = 0;
  for (const auto& part : parts) {
    mean.rows(next, part.num_elements()).copy_from(part);
    next += part.num_elements();
  }
  scale(mean, 1.0F / static_cast<float>(num_replicas));
  if (is_packed(bucket)) return unpack(mean);
  const auto& part = layout_.large.at(static_cast<std::size_t>(bucket));
  auto& weight = *weights_[part.index];
  optim::elements_of(weight.value(), part).copy_from(mean);
  weight.mark_changed();
}

tensor weight_average::pack() const {
  auto packed = tensor::empty({this->packed().num_elements});
  std::int64_t next = 0;
  for (auto index : this->packed().parameters) {
    const auto& value = weights_[index]->value();
    if (value.num_elements() > 0) packed.rows(next, value.num_elements()).copy_from(in_a_row(value));
    next += value.num_elements();
  }
  return packed;
}

void weight_average::unpack(const tensor& packed) const {
  std::int64_t next = 0;
  for (auto index : this->packed().parameters) {
    auto& value = weights_[index]->value();
    auto count = value.num_elements();
    if (count > 0) in_a_row(value).copy_from(packed.rows(next, count));
    next += count;
    weights_[index]->mark_changed();
  }
}

}  // namespace troupe::detail
