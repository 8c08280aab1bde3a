#pragma once
#include <vector>

#include "troupe/data_parallel/hooks/compressed_hook.hpp"

namespace troupe::detail {

/// The reduction of a bucket by compressors: in each round an all_reduce of the floating messages, and an
/// all_gather of the others.
class compressed_reduction : public bucket_reduction {
 public:
  /// Begins the first round. All arguments outlive this object.
  compressed_reduction(gradient_bucket& bucket, communicator& group,
                       const std::vector<compressed_hook::segment>& segments);
  ~compressed_reduction() override;
  compressed_reduction(const compressed_reduction&) = delete;
  compressed_reduction& operator=(const compressed_reduction&) = delete;
  bool proceed() override;

 private:
  /// Messages of one dtype in the current round.
  struct exchange {
    dtype type = dtype::f32;
    std::vector<std::size_t> segments;  ///< whose messages these are
    std::vector<std::int64_t> lengths;  ///< [segments] of a replica's message
    std::vector<tensor> of_replicas;    ///< [own replicas] [sum of lengths]
    tensor received;                    ///< sums [sum of lengths], or messages [replicas, sum of lengths]
    work call;
    bool is_gathered() const { return type == dtype::i32; }
    std::int64_t length() const;
  };

  void mark_not_finite();
  void begin_round();
  std::vector<exchange> messages_by_type();
  void begin(exchange& begun);
  void begin_sum(exchange& begun);
  void begin_gather(exchange& begun);
  void receive(const exchange& ended);
  gradients::gradient_part part_of(const compressed_hook::segment& segment) const {
    return {0, segment.count, round_};
  }

  gradient_bucket& bucket_;
  communicator& group_;
  const std::vector<compressed_hook::segment>& segments_;
  int round_ = 0, num_rounds_ = 1;
  std::vector<exchange> exchanges_;
};

}  // namespace troupe::detail
