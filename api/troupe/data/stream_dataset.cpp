#include "troupe/data/stream_dataset.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// Parts of a range of indices, shard by shard.
struct shard_part {
  std::size_t shard;
  std::int64_t first, count;  ///< within the shard
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
      : shards_(std::move(shards)), max_open_(static_cast<std::size_t>(std::max(max_open, 1))) {
    if (shards_.empty()) throw_invalid("stream_dataset", "at least one shard", "none");
    std::int64_t total = 0;
    for (const auto& shard : shards_) {
      if (!shard) throw_invalid("stream_dataset", "shards", "a null pointer");
      ends_.push_back(total += shard->num_samples());
      if (rest_of(*shard) != rest_of(*shards_.front()))
        throw bad_input("expected shards with samples of one shape, [N" + rest_of(*shards_.front()) +
                        ", found " + to_string(shard->sample_extents()) + " in shard " +
                        std::to_string(ends_.size() - 1));
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
      use(shard);
      auto content = shards_[shard]->read(part.within);
      samples.put(content.samples, part.places, shard);
      labels.put(content.labels, part.places, shard);
    }
    return {samples.result(), labels.result()};
  }

  void will_read(std::int64_t first, std::int64_t count) override {
    for (const auto& part : parts_of(first, count))
      if (const auto& reader = shards_[part.shard]->reader()) {
        use(part.shard);
        reader->will_read(part.first, part.count);
      }
  }
  void done_with(std::int64_t first, std::int64_t count) override {
    for (const auto& part : parts_of(first, count))
      if (const auto& reader = shards_[part.shard]->reader()) {
        use(part.shard);
        reader->done_with(part.first, part.count);
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

  /// Notes that a shard is read now, and closes the one that was not for the longest time.
  void use(std::size_t shard) {
    std::lock_guard lock(mutex_);
    if (!open_.empty() && open_.back() == shard) return;
    std::erase(open_, shard);
    open_.push_back(shard);
    if (open_.size() <= max_open_) return;
    if (const auto& reader = shards_[open_.front()]->reader()) reader->close();
    open_.pop_front();
  }

  std::vector<dataset_ptr> shards_;
  std::vector<std::int64_t> ends_;
  std::size_t max_open_;
  shape extents_;
  std::mutex mutex_;              // guards what follows
  std::deque<std::size_t> open_;  ///< the shard that was read last is at the end
};

}  // namespace

dataset_ptr stream_dataset(std::vector<dataset_ptr> shards, const stream_options& options) {
  stream_layout layout{.shard_sizes = {}, .shuffle_buffer = options.shuffle_buffer};
  for (const auto& shard : shards) layout.shard_sizes.push_back(shard ? shard->num_samples() : 0);
  auto reader = std::make_shared<concatenated_reader>(std::move(shards), options.max_open_shards);
  return std::make_shared<dataset>(std::move(reader), std::move(layout));
}

}  // namespace troupe
