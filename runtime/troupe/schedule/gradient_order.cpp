#include "troupe/schedule/gradient_order.hpp"

#include <algorithm>
#include <map>

namespace troupe::schedule {

std::string_view to_string(gradient_order order) {
  return order == gradient_order::ascending ? "ascending" : "descending";
}

gradient_order gradient_order_of(const plan& training) {
  if (training.num_microbatches < 2 || training.flush_every != 1) return gradient_order::ascending;
  std::map<int, int> lowest;  // [stage] microbatch so far
  for (const auto& device : training.devices)
    for (const auto& op : device) {
      if (op.kind != action_kind::backward && op.kind != action_kind::weight_gradient) continue;
      auto [found, is_first] = lowest.try_emplace(op.stage, training.num_microbatches);
      if (op.microbatch >= found->second) return gradient_order::ascending;
      found->second = op.microbatch;
    }
  return lowest.empty() ? gradient_order::ascending : gradient_order::descending;
}

}  // namespace troupe::schedule
