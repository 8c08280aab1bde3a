#include "troupe/data/dataset.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/ops/rows.hpp"

namespace troupe {
namespace {

void check(const shape& samples, const labelled_samples& content) {
  if (content.samples.shape() != samples)
    throw_invalid("dataset", "samples of shape " + to_string(samples), describe(content.samples));
  if (!content.labels.defined()) return;
  if (content.labels.shape().rank() < 1 || content.labels.shape()[0] != samples[0])
    throw_invalid("dataset", "labels for " + std::to_string(samples[0]) + " samples",
                  describe(content.labels));
}

shape checked(shape samples) {
  if (samples.rank() < 1) throw_invalid("dataset", "samples [N, ...]", to_string(samples));
  return samples;
}

/// "f32, labels i64[]": dtypes, and the shape of a sample's labels.
std::string kind_of(const labelled_samples& content) {
  auto text = std::string(to_string(content.samples.dtype()));
  if (!content.labels.defined()) return text + ", no labels";
  auto labels = content.labels.shape().extents();
  labels.erase(labels.begin());
  return text + ", labels " + std::string(to_string(content.labels.dtype())) +
         to_string(shape(std::move(labels)));
}

shape with_rows(const shape& extents, std::int64_t count) {
  auto changed = extents.extents();
  changed[0] = count;
  return shape(std::move(changed));
}

const shape& extents_of(const std::shared_ptr<sample_reader>& reader) {
  if (!reader) throw_invalid("dataset", "a reader", "a null pointer");
  return reader->sample_extents();
}

void check_layout(const stream_layout& layout, std::int64_t num_samples) {
  if (!layout.is_stream()) return;
  auto total = std::accumulate(layout.shard_sizes.begin(), layout.shard_sizes.end(), std::int64_t{0});
  if (std::ranges::any_of(layout.shard_sizes, [](auto size) { return size < 0; }) || total != num_samples)
    throw_invalid("dataset", "shards with the data set's " + std::to_string(num_samples) + " samples",
                  std::to_string(total));
  if (layout.shuffle_buffer < 1)
    throw_invalid("dataset", "a shuffle buffer of at least 1 sample", std::to_string(layout.shuffle_buffer));
}

}  // namespace

dataset::dataset(labelled_samples content)
    : extents_(checked(content.samples.shape())), content_(std::move(content)) {
  check(extents_, content_);
}

dataset::dataset(shape samples, std::function<labelled_samples()> read)
    : extents_(checked(std::move(samples))), read_(std::move(read)) {
  if (!read_) throw_invalid("dataset", "a function that reads the samples", "none");
}

dataset::dataset(std::shared_ptr<sample_reader> reader, stream_layout layout)
    : extents_(checked(extents_of(reader))), reader_(std::move(reader)), layout_(std::move(layout)) {
  check_layout(layout_, num_samples());
}

labelled_samples dataset::read(std::span<const std::int64_t> indices) {
  for (auto index : indices)
    if (index < 0 || index >= num_samples())
      throw_invalid("dataset", "indices in [0, " + std::to_string(num_samples()) + ")",
                    std::to_string(index));
  auto count = static_cast<std::int64_t>(indices.size());
  if (reader_) {
    auto content = reader_->read(indices);
    check(with_rows(extents_, count), content);
    require_same_kind(content);
    return content;
  }
  load();
  auto rows = tensor::from(indices, {count});
  return {gather_rows(content_.samples, rows),
          content_.labels.defined() ? gather_rows(content_.labels, rows) : tensor()};
}

labelled_samples dataset::read_rows(std::int64_t first, std::int64_t count) {
  if (reader_) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), first);
    return read(indices);
  }
  load();
  return {content_.samples.rows(first, count),
          content_.labels.defined() ? content_.labels.rows(first, count) : tensor()};
}

/// Otherwise batches of other shards or files would train with another meaning.
void dataset::require_same_kind(const labelled_samples& content) {
  auto kind = kind_of(content);
  std::lock_guard lock(mutex_);
  if (!kind_) kind_ = kind;
  if (kind != *kind_)
    throw bad_input("expected samples of " + *kind_ + " as were read first, found " + kind +
                    ": all shards and samples of a data set must have one dtype and labels of one shape");
}

bool dataset::is_unloaded() {
  std::lock_guard lock(mutex_);
  return !reader_ && !content_.samples.defined();
}

void dataset::load() {
  std::lock_guard lock(mutex_);
  if (content_.samples.defined() || reader_) return;
  auto content = read_();
  check(extents_, content);
  content_ = std::move(content);
}

const tensor& dataset::samples() {
  if (reader_)
    throw std::logic_error("[dataset] expected a data set in memory, got one of " + to_string(extents_) +
                           " that is read in parts: use read or read_rows");
  load();
  return content_.samples;
}

const tensor& dataset::labels() {
  samples();
  require_labels(*this, content_);
  return content_.labels;
}

void require_labels(const dataset& samples, const labelled_samples& content) {
  if (!content.labels.defined())
    throw bad_input("training and evaluation need labels, and this data set of " +
                    to_string(samples.sample_extents()) + " has none, which does for predictions only");
}

}  // namespace troupe
