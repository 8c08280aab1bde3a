#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe {

/// The indices of an epoch's samples, in order: a sampler of the user's own. Must be a pure function of the
/// epoch; the same in all processes.
using order_function = std::function<std::vector<std::int64_t>(std::uint64_t epoch)>;

/// Samples [first, first + count).
struct sample_range {
  std::int64_t first = 0, count = 0;
};

struct epoch_order_options {
  /// Samples in an epoch.
  std::int64_t num_samples = 0;
  std::uint64_t seed = 1;
  /// In each epoch in another random order; otherwise in the order of the indices.
  bool shuffle = true;
  stream_layout layout = {};
  /// Of a stream only this part: samples [begin, end) of the shards put one after the other in the epoch's
  /// order. An end beyond num_samples goes on at the first. 0 and 0: all.
  std::int64_t begin = 0, end = 0;
  /// Replaces the order above if it is not empty. Must return num_samples indices.
  order_function order = {};
};

/// The order of the samples in an epoch: a pure function of options and epoch, so that a position is one
/// number.
///
/// A data set that is no stream is permuted as a whole (8 bytes of memory per sample). A stream needs no
/// memory for samples beyond its shuffle buffer: the shards are permuted, put one after the other and cut
/// into blocks of shuffle_buffer samples, each of which is permuted. The first block has a random size, so
/// that the same samples are in other blocks in each epoch. Not thread-safe.
class epoch_order {
 public:
  /// Throws std::invalid_argument for fewer than one sample, and for 2^32 or more that are to be permuted.
  explicit epoch_order(epoch_order_options options);

  /// The number of samples in an epoch.
  std::int64_t size() const { return end_ - begin_; }
  /// The index of the sample at `position`, in [0, size()).
  std::int64_t at(std::uint64_t epoch, std::int64_t position);
  /// Which samples of a shuffled stream are read soon, after the calls of at() since this was called last:
  /// with the first sample of a block, those of the block after it. Of other orders none.
  std::vector<sample_range> take_read_soon() { return std::exchange(read_soon_, {}); }

 private:
  struct block {
    std::int64_t number = -1, first = 0;
    std::vector<std::int64_t> order;
  };

  void begin_epoch(std::uint64_t epoch);
  void begin_stream(std::uint64_t epoch);
  std::size_t place_of(std::int64_t position) const;
  std::int64_t index_of(std::int64_t position, std::size_t place) const;
  std::int64_t index_in_stream(std::int64_t position) const;
  std::int64_t shuffled(std::int64_t position);
  const block& block_at(std::int64_t position);
  void note_read_soon(std::int64_t block);
  std::int64_t first_of_block(std::int64_t number) const;

  epoch_order_options options_;
  std::int64_t begin_, end_;
  std::vector<std::int64_t> first_of_shard_;  ///< index of its first sample

  // of the epoch
  std::optional<std::uint64_t> epoch_;
  std::vector<std::int64_t> order_;  ///< of the samples, or of a stream's shards
  std::vector<std::int64_t> ends_;   ///< of the shards, one after the other in this order
  std::int64_t first_block_size_ = 0;
  std::array<block, 2> blocks_;  ///< batches on a border need two
  std::vector<sample_range> read_soon_;
};

/// Tells a reader, if there is one, what is read soon. May read from files: call it without a lock. A hint
/// that fails is ignored, since reading the samples says what is wrong.
void hint(sample_reader* reader, const std::vector<sample_range>& read_soon) noexcept;

}  // namespace troupe
