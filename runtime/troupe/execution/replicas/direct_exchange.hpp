#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "troupe/execution/replicas/replica_exchange.hpp"

namespace troupe::execution {

/// An exchange by messages from replica to replica. Each adds up a part of the elements of each bucket, which
/// it gets from all others, and sends them its sums: a reduce-scatter and an all-gather. Element by element
/// the sum is that of the fixed tree over replicas (tree_reduce), so that the bits do not depend on who adds
/// what, in which buckets or when.
/// A bucket that one replica owns goes to that one as a whole, which alone gets the sums: a reduce-scatter.
/// It acknowledges to the others that it has read what they gave. A message of the program goes to all
/// replicas: an all-gather.
class direct_exchange final : public replica_exchange {
 public:
  /// See stage_parameters.
  struct ownership {
    std::function<std::optional<int>(int bucket)> owner_of;  ///< null: buckets have no owners
    std::function<void(int bucket)> on_read;                 ///< of those that have one; or null
  };
  direct_exchange(replica_messages messages, int num_buckets, sum_memory memory, ownership owned = {});

  bool can_go_on() const override;
  void add_up() override;
  void go_on(const taker& take) override;

 private:
  struct bucket_state {
    std::int64_t num_elements = 0;
    dtype type = dtype::f32;
    std::optional<int> owner = {};
    bool is_message() const { return type == dtype::i32; }
    bool is_of_another(int replica) const { return owner && *owner != replica; }
    bool has_sums = false;  ///< of this replica's part, which are sent
    bool is_taken = false;
  };
  struct part {
    std::int64_t begin = 0, count = 0;
  };

  void begin(int bucket, const tensor& gradients) override;
  static transport::tensor_role result_role(const bucket_state& bucket);
  bool gives_result(const bucket_state& bucket, int replica) const;
  part part_of(const bucket_state& bucket, int replica) const;
  bool has_gradients(int bucket) const;
  bool has_sums(int bucket) const;
  void add_up_bucket(int bucket);
  void take_acknowledgement(int bucket);
  std::vector<tensor> take_sums(int bucket);
  void forget_taken();
  std::string lane_name() const;  ///< in errors

  sum_memory memory_;
  ownership owned_;
  std::vector<bucket_state> buckets_;
  std::vector<int> given_;  ///< the buckets not taken yet, in the order they were given
};

}  // namespace troupe::execution
