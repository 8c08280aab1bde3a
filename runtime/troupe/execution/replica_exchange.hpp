#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/execution/inbox.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::execution {

/// How the replicas of a stage add up its gradients in a G, bucket by bucket, as one of them sees it. Each
/// replica adds up a part of the elements of each bucket, which it gets from all others, and sends them its
/// sums: a reduce-scatter and an all-gather by direct messages. Element by element the sum is that of the
/// fixed tree over replicas (tree_reduce), so that the bits do not depend on who adds what, in which buckets
/// or when.
/// A bucket of i32 is a message, which goes to all replicas as it is: an all-gather.
///
/// Not thread-safe.
class replica_exchange {
 public:
  /// To the same stage of the replica that the tag names.
  using sender = std::function<void(const transport::tensor_tag& to, tensor value)>;
  using taker = std::function<void(int bucket, const std::vector<tensor>& sums)>;
  /// Memory for the sums of a bucket, of any value. It may be that of the G before: who gives a bucket has
  /// taken the sums of the last one.
  using sum_memory = std::function<tensor(int bucket, std::int64_t num_elements, dtype type)>;

  replica_exchange() = default;
  /// `tag`: of this stage, step and G; its role, port and replica are set for each message.
  replica_exchange(int replica, int num_replicas, int num_buckets, const transport::tensor_tag& tag,
                   sum_memory memory = new_memory);

  /// Sends a complete bucket, f32, bf16 or f16 [n], to the replicas that add up its parts, this one included,
  /// or an i32 [n] to all. Its sums have its dtype: they are computed in f32 and rounded once. No effect if
  /// it was given before. Throws std::logic_error for another form.
  void give(int bucket, const tensor& gradients, const sender& send);
  /// In ascending order.
  std::vector<int> not_given() const;
  /// Whether go_on would do anything.
  bool can_go_on(const inbox& arrived) const;
  /// Adds up the parts whose gradients are there from all replicas, and sends the sums. Throws
  /// std::logic_error if a replica gave another number of elements or another dtype.
  void add_up(inbox& arrived, const sender& send);
  /// The same, and gives `take` the buckets whose sums, or messages of all replicas in order, are there.
  void go_on(inbox& arrived, const sender& send, const taker& take);
  /// All buckets are taken.
  bool is_done() const { return num_taken_ == static_cast<int>(buckets_.size()); }

 private:
  struct bucket_state {
    std::int64_t num_elements = 0;  ///< 0: not given yet
    dtype type = dtype::f32;
    bool is_message() const { return type == dtype::i32; }
    bool has_sums = false;  ///< of this replica's part, which are sent
    bool is_taken = false;
  };
  struct part {
    std::int64_t begin = 0, count = 0;
  };

  static tensor new_memory(int, std::int64_t num_elements, dtype type) {
    return tensor::empty({num_elements}, type);
  }
  static transport::tensor_role result_role(const bucket_state& bucket);
  bool gives_result(const bucket_state& bucket, int replica) const;
  part part_of(const bucket_state& bucket, int replica) const;
  transport::tensor_tag tag_of(transport::tensor_role role, int bucket, int from, int to) const;
  bool has_gradients(int bucket, const inbox& arrived) const;
  bool has_sums(int bucket, const inbox& arrived) const;
  void add_up_bucket(int bucket, inbox& arrived, const sender& send);
  std::vector<tensor> take_sums(int bucket, inbox& arrived);

  int replica_ = 0, num_replicas_ = 1;
  transport::tensor_tag tag_;
  sum_memory memory_;
  std::vector<bucket_state> buckets_;
  std::vector<int> given_;  ///< the buckets not taken yet, in the order they were given
  int num_taken_ = 0;
};

}  // namespace troupe::execution
