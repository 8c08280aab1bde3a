#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Samples and their labels.
struct labelled_samples {
  tensor samples;  ///< [N, ...]
  /// [N], or [N, ...] if each sample has several labels. May be undefined for predictions.
  tensor labels = {};
};

/// Reads samples when they are asked for: the base of data sets that are larger than memory. One for each
/// format; map_dataset (map_dataset.hpp) makes one of a function.
class sample_reader {
 public:
  virtual ~sample_reader() = default;
  /// [N, ...]
  virtual const shape& sample_extents() const = 0;
  /// Copies of the samples with these indices, all in [0, N), and of their labels if there are any: [n, ...]
  /// in the order of `indices`. A pure function of the indices. Called from several threads at once.
  virtual labelled_samples read(std::span<const std::int64_t> indices) = 0;
  /// The samples [first, first + count) are read soon: a hint for files. What it throws is ignored, since
  /// reading the samples says what is wrong. Called from several threads at once.
  virtual void will_read(std::int64_t /*first*/, std::int64_t /*count*/) {}
  /// Closes files, which the next read opens again.
  virtual void close() {}
  /// Tells apart data of the same size in positions and snapshots: the file's name without its folder. Empty:
  /// data without a name.
  virtual std::string name() const { return {}; }
};

/// A data set that is read as a stream: shard after shard, each from its first sample to its last. In each
/// epoch the shards come in another order, and samples that follow each other are shuffled among themselves.
struct stream_layout {
  /// Samples in each shard; the first shard has the first indices. Empty: the data set is no stream, and its
  /// samples are read in any order.
  std::vector<std::int64_t> shard_sizes;
  /// The number of samples, following each other in the stream, that are shuffled among themselves. 1 keeps
  /// their order. More mixes better, and as many samples are read from the files at random.
  std::int64_t shuffle_buffer = 1;
  std::uint64_t names_hash = 0;  ///< of the names of the shards, in order

  bool is_stream() const { return !shard_sizes.empty(); }
};

/// Samples with indices from 0 on: in memory, loaded when they are first used, or read by a sample_reader.
/// Thread-safe; share one per process.
class dataset {
 public:
  /// Wraps samples in memory. Throws std::invalid_argument if there are labels but not one per sample.
  explicit dataset(labelled_samples content);
  /// Samples of shape `samples` that `read` loads at first use. Throws std::invalid_argument for a shape
  /// without axes and for an empty function.
  dataset(shape samples, std::function<labelled_samples()> read);
  /// Samples that `reader` reads; `layout` if they are to be read as a stream. Throws std::invalid_argument
  /// for a null pointer, a shape without axes, and a layout with other samples.
  explicit dataset(std::shared_ptr<sample_reader> reader, stream_layout layout = {});

  /// [N, ...], known without loading.
  const shape& sample_extents() const { return extents_; }
  std::int64_t num_samples() const { return extents_[0]; }
  const stream_layout& layout() const { return layout_; }

  /// Copies of the samples with these indices, in this order, and of their labels if there are any: [n, ...].
  /// Throws std::invalid_argument for indices out of range, what reading throws, usually bad_input, and
  /// bad_input if a reader returns another dtype or labels of another shape than in its first read.
  labelled_samples read(std::span<const std::int64_t> indices);
  /// Samples [first, first + count); shares the elements of samples in memory.
  labelled_samples read_rows(std::int64_t first, std::int64_t count);
  /// The reader; null if the samples are in memory.
  const std::shared_ptr<sample_reader>& reader() const { return reader_; }
  /// Whether load() is still to load all samples into memory.
  bool is_unloaded();

  /// Loads the samples if they are to be in memory and are not loaded yet. Throws what `read` throws, usually
  /// bad_input. Call it early from another thread to take loading off the critical path.
  void load();
  /// The samples or labels; loads them first if necessary. labels() throws bad_input if there are none. Both
  /// throw std::logic_error if a reader reads them.
  const tensor& samples();
  const tensor& labels();

 private:
  shape extents_;
  std::function<labelled_samples()> read_;
  std::shared_ptr<sample_reader> reader_;
  stream_layout layout_;
  void require_same_kind(const labelled_samples& content);

  std::mutex mutex_;  // guards the reading; content_ does not change after it
  labelled_samples content_;
  std::optional<std::string> kind_;  ///< of what the reader returned first
};

using dataset_ptr = std::shared_ptr<dataset>;

/// Throws bad_input if `content`, read from `samples`, has no labels, which training and evaluation need.
void require_labels(const dataset& samples, const labelled_samples& content);

}  // namespace troupe
