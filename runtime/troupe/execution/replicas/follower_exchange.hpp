#pragma once
#include <cstddef>
#include <vector>

#include "troupe/execution/replicas/replica_exchange.hpp"

namespace troupe::execution {

/// The exchange of a replica whose process has another one that leads (group_exchange): that gets its
/// buckets, and gives it the sums.
class follower_exchange final : public replica_exchange {
 public:
  follower_exchange(replica_messages messages, int num_buckets, int leader)
      : replica_exchange(std::move(messages), num_buckets),
        leader_(leader),
        num_results_(static_cast<std::size_t>(num_buckets)) {}

  bool can_go_on() const override;
  void add_up() override {}
  void go_on(const taker& take) override;

 private:
  void begin(int bucket, const tensor& gradients) override;
  bool has_results(int bucket) const;

  int leader_;
  std::vector<int> num_results_;  ///< [bucket] tensors that the leader sends
  std::vector<int> given_;        ///< the buckets not taken yet
};

}  // namespace troupe::execution
