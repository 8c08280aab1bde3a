#include "troupe/data/detail/describe_samples.hpp"

#include <algorithm>
#include <vector>

#include "troupe/agreement/job_description.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

/// A few evenly spaced samples.
labelled_samples some_of(dataset& samples) {
  constexpr std::int64_t max_inspected = 16;
  if (samples.num_samples() == 0 && samples.reader())
    throw bad_input("the data set has no samples: " + to_string(samples.sample_extents()));
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0, count = std::min(samples.num_samples(), max_inspected); i < count; ++i)
    indices.push_back(i * (samples.num_samples() / count));
  return samples.read(indices);
}

std::string hash_of_rows(const std::vector<tensor>& parts) {
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0, count = parts.front().shape()[0]; i < count; ++i)
    for (const auto& part : parts) {
      auto row = part.rows(i, 1);
      bytes.insert(bytes.end(), row.bytes().begin(), row.bytes().end());
    }
  return agreement::short_hash(bytes);
}

}  // namespace

std::string describe_samples(const dataset& samples) {
  auto extents = samples.sample_extents().extents();
  extents.erase(extents.begin());
  return std::to_string(samples.num_samples()) + " samples of " + to_string(shape(std::move(extents))) +
         (samples.layout().is_stream() ? ", " + describe_stream(samples) : "");
}

std::string describe_stream(const dataset& samples) {
  const auto& layout = samples.layout();
  if (!layout.is_stream()) return {};
  auto text = std::to_string(layout.names_hash);
  for (auto size : layout.shard_sizes) text += ' ' + std::to_string(size);
  return "a stream of " + std::to_string(layout.shard_sizes.size()) + " shards, shuffle buffer " +
         std::to_string(layout.shuffle_buffer) + ", " + agreement::short_hash(std::as_bytes(std::span(text)));
}

std::string describe_content(dataset& samples) {
  auto some = some_of(samples);
  require_labels(samples, some);
  auto labels = some.labels.shape().extents();
  labels[0] = samples.num_samples();
  return std::string(to_string(some.samples.dtype())) + ", labels " +
         std::string(to_string(some.labels.dtype())) + to_string(shape(std::move(labels))) + ", " +
         hash_of_rows({some.samples, some.labels});
}

std::string describe_inputs(dataset& samples) {
  auto some = some_of(samples);
  return std::string(to_string(some.samples.dtype())) + ", " + hash_of_rows({some.samples});
}

}  // namespace troupe::detail
