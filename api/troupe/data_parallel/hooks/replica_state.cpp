#include "troupe/data_parallel/hooks/replica_state.hpp"

#include "troupe/tensor/memory.hpp"

namespace troupe {

void replica_state::prepare(const std::vector<gradient_bucket>& buckets,
                            const std::function<bool(const bucket_part&)>& is_selected) {
  values_.clear();
  state_.clear();
  memory_scope counted(memory_category::gradients);
  for (const auto& bucket : buckets) {
    auto& of_bucket = values_.emplace_back();
    for (std::size_t leaf = 0; leaf < bucket.leaves.size(); ++leaf) {
      auto& added = of_bucket.emplace_back(tensor::zeros(bucket.sum.shape()));
      auto replica = std::to_string(bucket.own_replicas[leaf]);
      for (const auto& part : bucket.parts)
        if (!is_selected || is_selected(part))
          state_.push_back({"replica." + replica + "/" + name_ + "/" + part.parameter, part_of(added, part)});
    }
  }
}

const tensor& replica_state::of(const gradient_bucket& bucket, std::size_t leaf) const {
  return values_[static_cast<std::size_t>(bucket.index)][leaf];
}

void replica_state::add_state(std::vector<named_tensor>& to) const {
  to.insert(to.end(), state_.begin(), state_.end());
}

tensor part_of(const tensor& leaf, const bucket_part& part) {
  return leaf.rows(part.first, part.extents.num_elements()).reshape(part.extents);
}

}  // namespace troupe
