#include "troupe/execution/replicas/follower_exchange.hpp"

#include <algorithm>

namespace troupe::execution {

using transport::tensor_role;

void follower_exchange::begin(int bucket, const tensor& gradients) {
  bool is_message = gradients.dtype() == dtype::i32;
  num_results_[static_cast<std::size_t>(bucket)] = is_message ? messages().num_replicas() : 1;
  given_.push_back(bucket);
  messages().send(tensor_role::replica_gradients, bucket, messages().replica(), leader_, gradients);
}

bool follower_exchange::can_go_on() const {
  return std::ranges::any_of(given_, [this](int bucket) { return has_results(bucket); });
}

void follower_exchange::go_on(const taker& take) {
  auto is_here = std::ranges::stable_partition(given_, [this](int bucket) { return !has_results(bucket); });
  std::vector<int> ended(is_here.begin(), is_here.end());
  given_.erase(is_here.begin(), is_here.end());
  for (int bucket : ended) {
    std::vector<tensor> results;
    for (int number = 0; number < num_results_[static_cast<std::size_t>(bucket)]; ++number)
      results.push_back(messages().take(tensor_role::summed_gradients, bucket, number));
    note_taken();
    take(bucket, results);
  }
}

/// From the leader: of a message, those of all replicas.
bool follower_exchange::has_results(int bucket) const {
  for (int number = 0; number < num_results_[static_cast<std::size_t>(bucket)]; ++number)
    if (!messages().has(tensor_role::summed_gradients, bucket, number)) return false;
  return true;
}

}  // namespace troupe::execution
