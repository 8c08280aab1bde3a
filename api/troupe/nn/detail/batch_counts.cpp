#include "troupe/nn/detail/batch_counts.hpp"

#include <set>
#include <string>
#include <string_view>

namespace troupe::nn::detail {

std::vector<named_tensor> without_batch_counts(std::vector<named_tensor> tensors) {
  constexpr std::string_view count = "num_batches_tracked", mean = "running_mean";
  std::set<std::string> layers;
  for (const auto& each : tensors)
    if (each.name.ends_with(mean)) layers.insert(each.name.substr(0, each.name.size() - mean.size()));
  std::erase_if(tensors, [&](const named_tensor& each) {
    return each.name.ends_with(count) && each.value.defined() && each.value.dtype() == dtype::i64 &&
           each.value.shape().rank() == 0 &&
           layers.contains(each.name.substr(0, each.name.size() - count.size()));
  });
  return tensors;
}

}  // namespace troupe::nn::detail
