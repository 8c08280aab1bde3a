#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/execution/replicas/replica_messages.hpp"

namespace troupe::execution {

/// How the replicas of a stage add up its gradients in one G, bucket by bucket, as one of them sees it. A
/// bucket is given when it is complete; its sums can be taken some time later. Nothing blocks.
///
/// Not thread-safe.
class replica_exchange {
 public:
  /// `sums`: together, one after the other, the elements of the bucket; of a message those of all replicas,
  /// in order.
  using taker = std::function<void(int bucket, const std::vector<tensor>& sums)>;
  /// Memory for the sums of a bucket, of any value. It may be that of the G before: who gives a bucket has
  /// taken the sums of the last one.
  using sum_memory = std::function<tensor(int bucket, std::int64_t num_elements, dtype type)>;

  virtual ~replica_exchange() = default;
  replica_exchange(const replica_exchange&) = delete;
  replica_exchange& operator=(const replica_exchange&) = delete;

  /// A complete bucket, f32, bf16 or f16 [n], whose sums have its dtype: they are computed in f32 and rounded
  /// once. Or a message, i32 [n], which all replicas get as it is. n > 0. The elements must not change until
  /// the bucket is taken, or, if a replica owns it, read. No effect if it was given before. Throws
  /// std::logic_error for another form.
  void give(int bucket, const tensor& gradients);
  /// In ascending order.
  std::vector<int> not_given() const;
  /// All buckets are taken.
  bool is_done() const { return num_taken_ == is_given_.size(); }
  /// Whether go_on would do anything.
  virtual bool can_go_on() const = 0;
  /// Adds up what has come from the others, as far as this replica does that, and sends it on.
  virtual void add_up() = 0;
  /// The same, and gives `take` the buckets whose sums are there. Throws std::logic_error if replicas gave
  /// different numbers of elements or dtypes.
  virtual void go_on(const taker& take) = 0;

 protected:
  replica_exchange(replica_messages messages, int num_buckets)
      : messages_(std::move(messages)), is_given_(static_cast<std::size_t>(num_buckets)) {}
  /// The first time a bucket is given, in a form that is allowed.
  virtual void begin(int bucket, const tensor& gradients) = 0;
  void note_taken() { ++num_taken_; }
  const replica_messages& messages() const { return messages_; }

 private:
  replica_messages messages_;
  std::vector<bool> is_given_;
  std::size_t num_taken_ = 0;
};

}  // namespace troupe::execution
