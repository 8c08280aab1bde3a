#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "troupe/data/data_position.hpp"
#include "troupe/data/dataset.hpp"
#include "troupe/data/distributed_sampler.hpp"

namespace troupe {

struct data_loader_options {
  /// Samples per batch of this replica, >= 1.
  std::int64_t batch = 1;
  /// Omit a last, smaller batch. False: the last batch of an epoch may be smaller than the others.
  bool drop_last = true;
  /// Threads that read beside the loop; 0: the loop's thread reads when it needs a batch. Batches come in the
  /// same order with any number.
  int num_workers = 1;
  /// The maximum number of batches in memory that are being read or wait for the loop.
  std::int64_t prefetch = 4;

  // The samples of this replica, as in distributed_sampler_options.
  int num_replicas = 1;
  int replica = 0;
  std::uint64_t seed = 1;
  shard_tail tail = shard_tail::pad;
  bool shuffle = true;
  /// Replaces the order of the epochs if it is not empty; returns samples_per_epoch indices.
  order_function order = {};
  /// Of `order`. 0: as many as the data set has.
  std::int64_t samples_per_epoch = 0;
};

/// A sample that could not be read. what() names it and says why; the exception of the data set is nested in
/// it (std::rethrow_if_nested).
class data_error : public std::runtime_error {
 public:
  data_error(const std::string& what, std::int64_t sample) : std::runtime_error(what), sample_(sample) {}
  /// Its index in the data set; -1 if each sample of the batch can be read by itself.
  std::int64_t sample() const { return sample_; }

 private:
  std::int64_t sample_;
};

/// Batches of one replica's shard of a data set, read ahead on threads of its own:
///
///     DataLoader loader(samples, {.batch = 32, .num_replicas = all.size(), .replica = all.rank()});
///     while (loader.epoch() < 10)
///       for (auto& [samples, labels] : loader) ...
///
/// A loop over it takes the rest of one epoch; the loop after it the next epoch, in another order. A batch is
/// taken when the loop's body begins. After `break`, or an exception in the body, the next loop goes on with
/// the next batch of the same epoch.
///
/// Order and content of the batches are a pure function of data set, options and position. Used by one thread
/// at a time, in one loop at a time.
///
/// As in PyTorch: batches come in order whatever num_workers is; pad is DistributedSampler's default. Not as
/// in PyTorch: shuffle and drop_last are true unless set; workers are threads, one unless set; prefetch
/// counts the batches of all workers together; epochs are counted by the loader, without set_epoch.
class DataLoader {
 public:
  class iterator;

  /// Throws std::invalid_argument for options out of their range, with drop_last if a shard has no complete
  /// batch, and with drop_last for shard_tail::uneven.
  explicit DataLoader(dataset_ptr samples, const data_loader_options& options = {});
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  /// Waits for the batches that are being read.
  ~DataLoader();

  /// The next batch of the epoch; nullopt at its end, after which the next call begins another one. A sample
  /// that cannot be read throws data_error where its batch would come; another call tries that batch again.
  std::optional<labelled_samples> next();

  /// For loops; throws as next() does, also when the iterator advances.
  iterator begin();
  std::default_sentinel_t end() const { return {}; }

  /// Batches of a whole epoch.
  std::int64_t num_batches() const;
  /// The epoch that a loop is in or begins, from 0 on. One more after the last batch's loop body.
  std::uint64_t epoch() const;

  /// After the batches taken so far: a loader that resumes here continues with the next one. In the body of
  /// an epoch's last batch that is the end of the epoch, of which the resumed loader has no more batches.
  data_position position() const;
  /// Goes to a position, perhaps one that another process saved; a data_position{} is the beginning. The
  /// samples of the epoch that are left may be shared among another number of replicas than before, unless
  /// the data set is a stream. Throws bad_input, saying what differs, for another number of samples, seed or
  /// order, other names of files (without their folders), and in a stream other sizes of the shards, another
  /// shuffle_buffer or tail. Other content under the same names is not noticed.
  void resume(const data_position& position);
  /// Goes to the first batch of an epoch.
  void begin_epoch(std::uint64_t epoch);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// An input iterator; its batch may be moved from.
class DataLoader::iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = labelled_samples;
  using difference_type = std::ptrdiff_t;

  labelled_samples& operator*() const { return *batch_; }
  labelled_samples* operator->() const { return batch_; }
  iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& one, std::default_sentinel_t) { return one.batch_ == nullptr; }

 private:
  friend class DataLoader;
  explicit iterator(state* loader) : loader_(loader) { ++*this; }

  state* loader_;
  labelled_samples* batch_ = nullptr;  ///< null at the end of the epoch
};

}  // namespace troupe
