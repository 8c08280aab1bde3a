#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/pipeline/detail/parameters/bucket_layout.hpp"

namespace troupe::detail {

/// How the gradients of a stage travel between its replicas (stage_program::bucket). Large ones
/// travel as views of their own memory, in buckets of at most 2 MiB, so that nothing is copied and the first
/// buckets travel while others are computed. All small ones are packed into bucket 0, or, where replicas own
/// parameters, those of replica k into bucket k. These buckets also tell which parameters have a gradient, so
/// that what no replica has a gradient of is not stepped. The lower a bucket, the sooner the next forward
/// needs it: over a busy link it goes first (send_queue.hpp). A pure function of the parameters' shapes,
/// their order and owners: the same in all replicas.
class replica_buckets {
 public:
  /// Those of `parameters` that are trainable; they outlive this object. Indices are those of `parameters`.
  /// `by_use`, `num_rounds`, `owners`: see layout_of.
  explicit replica_buckets(std::vector<parameter*> parameters, const std::vector<std::size_t>& by_use = {},
                           const std::function<int(std::size_t index)>& num_rounds = nullptr,
                           bucket_owners owners = {});

  int count() const { return num_packed() + static_cast<int>(layout_.large.size()); }
  bool is_packed(int bucket) const { return bucket < num_packed(); }
  /// The replica that steps what is in it; none: each does.
  std::optional<int> owner_of(int bucket) const;
  /// Indices of the parameters in a packed bucket.
  const std::vector<std::size_t>& packed(int bucket) const { return packed_bucket(bucket).parameters; }
  /// The elements of a bucket that is not packed.
  const optim::parameter_part& part_of(int bucket) const {
    return layout_.large.at(static_cast<std::size_t>(bucket - num_packed()));
  }
  /// How often the elements of a bucket that is not packed travel before it.
  int round_of(int bucket) const;
  /// The first and the number of the buckets that a parameter has for itself; 0 for a small one.
  std::pair<int, int> buckets_of(const parameter& whose) const;

  /// f32 [n], on the device of the gradients. Of a parameter without gradient: zeros, which are written to
  /// its gradient.
  tensor elements_of(int bucket) const;
  /// Copies the summed elements of a bucket, one part after the other, to the gradients of `parameters`, of
  /// the same shapes, which get memory if they have none. Of a packed bucket also to has_gradient, of all
  /// parameters.
  void set_elements(int bucket, const std::vector<tensor>& parts,
                    const std::vector<parameter*>& parameters) const;

 private:
  int num_packed() const { return static_cast<int>(layout_.packed.size()); }
  const bucket_layout::packed_bucket& packed_bucket(int bucket) const {
    return layout_.packed.at(static_cast<std::size_t>(bucket));
  }
  std::int64_t size_of_packed(int bucket) const;
  tensor pack(int bucket) const;
  void unpack(int bucket, const tensor& packed, const std::vector<parameter*>& parameters) const;

  std::vector<parameter*> parameters_;
  bucket_owners owners_;
  bucket_layout layout_;
  std::vector<parameter*> trainable_;
};

}  // namespace troupe::detail
