#include "troupe/pipeline/detail/parameters/bucket_layout.hpp"

#include <algorithm>

namespace troupe::detail {
namespace {

/// Below, a message of its own costs more than a copy.
constexpr std::int64_t min_elements_of_own = std::int64_t{1} << 14;
constexpr std::int64_t max_elements = std::int64_t{1} << 19;

void add_buckets(std::size_t index, std::int64_t num_elements, bucket_layout& layout) {
  auto num_buckets = (num_elements + max_elements - 1) / max_elements;
  for (std::int64_t i = 0; i < num_buckets; ++i) {
    auto first = num_elements * i / num_buckets;
    layout.large.push_back({index, first, num_elements * (i + 1) / num_buckets - first});
  }
}

}  // namespace

bool is_large(const parameter& one) { return one.extents.num_elements() >= min_elements_of_own; }

bucket_layout layout_of(const std::vector<parameter*>& parameters, const std::vector<std::size_t>& by_use,
                        const std::function<int(std::size_t index)>& num_rounds, const bucket_owners& owners,
                        layout_scope which) {
  bucket_layout layout;
  layout.packed.resize(static_cast<std::size_t>(std::max(owners.num_replicas, 1)));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto index = by_use.empty() ? i : by_use[i];
    const auto& each = *parameters[index];
    if (which == layout_scope::trainable && !each.requires_gradient) continue;
    auto num_elements = each.extents.num_elements();
    if (!is_large(each)) {
      auto owner = owners.num_replicas > 0 ? owners.of_parameter[index] : 0;
      auto& packed = layout.packed[static_cast<std::size_t>(owner)];
      packed.parameters.push_back(index);
      packed.num_elements += num_elements;
    } else if (auto rounds = num_rounds ? num_rounds(index) : 1; rounds > 1) {
      layout.large.insert(layout.large.end(), static_cast<std::size_t>(rounds), {index, 0, num_elements});
    } else {
      add_buckets(index, num_elements, layout);
    }
  }
  return layout;
}

}  // namespace troupe::detail
