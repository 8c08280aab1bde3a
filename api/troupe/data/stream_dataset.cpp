#include "troupe/data/stream_dataset.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "troupe/error/errors.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {
namespace {

/// Parts of a range of indices, shard by shard.
struct shard_part {
  std::size_t shard;
  std::int64_t first, count;  ///< index of the first sample in its shard, number of samples
};

/// The rows of a batch, put in place shard by shard.
class gathered_rows {
 public:
  explicit gathered_rows(std::size_t count) : count_(static_cast<std::int64_t>(count)) {}

  void put(const tensor& rows, const std::vector<std::int64_t>& places, std::size_t shard) {
    auto extents = rows.shape().extents();
    if (rows.defined()) extents[0] = count_;
    shape whole(std::move(extents));
    if (is_first_ && rows.defined()) all_ = tensor::empty(whole, rows.dtype());
    if (!is_first_ &&
        (all_.defined() != rows.defined() || all_.shape() != whole || all_.dtype() != rows.dtype()))
      throw bad_input("expected shards of one dtype and shape, with labels or without: found " +
                      describe(rows) + " in shard " + std::to_string(shard) + ", and " + describe(all_) +
                      " for the batch of shards before");
    is_first_ = false;
    for (std::size_t i = 0; rows.defined() && i < places.size(); ++i)
      std::ranges::copy(rows.rows(static_cast<std::int64_t>(i), 1).bytes(),
                        all_.rows(places[i], 1).bytes().begin());
  }
  const tensor& result() const { return all_; }

 private:
  std::int64_t count_;
  bool is_first_ = true;
  tensor all_;
};

class concatenated_reader : public sample_reader {
 public:
  concatenated_reader(std::vector<dataset_ptr> shards, int max_open)
      : shards_(std::move(shards)), max_open_(static_cast<std::size_t>(max_open)) {
    if (max_open < 1)
      throw_invalid("stream_dataset", "max_open_shards of at least 1", std::to_string(max_open));
    if (shards_.empty()) throw_invalid("stream_dataset", "at least one shard", "none");
    std::int64_t total = 0;
    for (const auto& shard : shards_) {
      if (!shard) throw_invalid("stream_dataset", "shards", "a null pointer");
      ends_.push_back(total += shard->num_samples());
      if (rest_of(*shard) != rest_of(*shards_.front()))
        throw bad_input("expected shards with samples of one shape, [N" + rest_of(*shards_.front()) +
                        ", found " + to_string(shard->sample_extents()) + " in shard " +
                        std::to_string(ends_.size() - 1));
      if (shard->is_unloaded())
        throw bad_input("expected shards that are in memory or read in parts, found shard " +
                        std::to_string(ends_.size() - 1) +
                        ", which is loaded whole at its first use: call its load() before, or write it as an "
                        "NPY file or a file of records");
    }
    auto extents = shards_.front()->sample_extents().extents();
    extents[0] = total;
    extents_ = shape(std::move(extents));
  }

  const shape& sample_extents() const override { return extents_; }

  /// Reads each shard's samples at once, and puts them where they belong.
  labelled_samples read(std::span<const std::int64_t> indices) override {
    struct of_shard {
      std::vector<std::int64_t> within, places;
    };
    std::map<std::size_t, of_shard> parts;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto shard = shard_of(indices[i]);
      parts[shard].within.push_back(indices[i] - first_of(shard));
      parts[shard].places.push_back(static_cast<std::int64_t>(i));
    }
    gathered_rows samples(indices.size()), labels(indices.size());
    for (const auto& [shard, part] : parts) {
      open_while pinned(*this, shard);
      auto content = shards_[shard]->read(part.within);
      samples.put(content.samples, part.places, shard);
      labels.put(content.labels, part.places, shard);
    }
    return {samples.result(), labels.result()};
  }

  void will_read(std::int64_t first, std::int64_t count) override {
    for (const auto& part : parts_of(first, count))
      if (const auto& reader = shards_[part.shard]->reader()) {
        open_while pinned(*this, part.shard);
        reader->will_read(part.first, part.count);
      }
  }
  void close() override {
    for (const auto& shard : shards_)
      if (shard->reader()) shard->reader()->close();
  }

 private:
  static std::string rest_of(const dataset& shard) {
    std::string text;
    for (int axis = 1; axis < shard.sample_extents().rank(); ++axis)
      text += ", " + std::to_string(shard.sample_extents()[axis]);
    return text + "]";
  }

  std::size_t shard_of(std::int64_t index) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  }
  std::int64_t first_of(std::size_t shard) const { return shard == 0 ? 0 : ends_[shard - 1]; }

  std::vector<shard_part> parts_of(std::int64_t first, std::int64_t count) const {
    std::vector<shard_part> parts;
    while (count > 0) {
      auto shard = shard_of(first);
      auto size = std::min(count, ends_[shard] - first);
      parts.push_back({shard, first - first_of(shard), size});
      first += size;
      count -= size;
    }
    return parts;
  }

  /// Keeps a shard open while it is read.
  class open_while {
   public:
    open_while(concatenated_reader& reader, std::size_t shard) : reader_(reader), shard_(shard) {
      reader_.pin(shard_);
    }
    open_while(const open_while&) = delete;
    open_while& operator=(const open_while&) = delete;
    ~open_while() { reader_.unpin(shard_); }

   private:
    concatenated_reader& reader_;
    std::size_t shard_;
  };

  struct open_shard {
    std::size_t shard;
    int num_reads;  ///< reads in progress, during which it is not closed
  };

  void pin(std::size_t shard) {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find(open_, shard, &open_shard::shard);
    open_shard one{shard, 0};
    if (found != open_.end()) {
      one = *found;
      open_.erase(found);
    }
    ++one.num_reads;
    open_.push_back(one);
    close_oldest();
  }
  void unpin(std::size_t shard) {
    std::lock_guard lock(mutex_);
    --std::ranges::find(open_, shard, &open_shard::shard)->num_reads;
    close_oldest();
  }
  /// Closes those that were not read for the longest time, and are not read now.
  void close_oldest() {
    while (open_.size() > max_open_) {
      auto oldest = std::ranges::find(open_, 0, &open_shard::num_reads);
      if (oldest == open_.end()) return;
      if (const auto& reader = shards_[oldest->shard]->reader()) reader->close();
      open_.erase(oldest);
    }
  }

  std::vector<dataset_ptr> shards_;
  std::vector<std::int64_t> ends_;
  std::size_t max_open_;
  shape extents_;
  std::mutex mutex_;             // guards what follows
  std::deque<open_shard> open_;  ///< the shard that was read last is at the end
};

}  // namespace

dataset_ptr stream_dataset(std::vector<dataset_ptr> shards, const stream_options& options) {
  stream_layout layout{.shard_sizes = {}, .shuffle_buffer = options.shuffle_buffer};
  std::string names;
  for (const auto& shard : shards) {
    layout.shard_sizes.push_back(shard ? shard->num_samples() : 0);
    names += (shard && shard->reader() ? shard->reader()->name() : "") + '\n';
  }
  layout.names_hash = hash_of_name(names);
  auto reader = std::make_shared<concatenated_reader>(std::move(shards), options.max_open_shards);
  return std::make_shared<dataset>(std::move(reader), std::move(layout));
}

}  // namespace troupe
