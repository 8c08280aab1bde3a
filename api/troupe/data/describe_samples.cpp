#include "troupe/data/describe_samples.hpp"

#include <algorithm>
#include <vector>

#include "troupe/program/job_description.hpp"

namespace troupe {
namespace {

/// Hashes a few evenly spaced rows of a tensor.
std::string hash_of_some(const std::vector<tensor>& parts) {
  constexpr std::int64_t max_inspected = 16;
  auto total = parts.front().shape()[0];
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0, count = std::min(total, max_inspected); i < count; ++i)
    for (const auto& part : parts) {
      auto row = part.rows(i * (total / count), 1);
      bytes.insert(bytes.end(), row.bytes().begin(), row.bytes().end());
    }
  return short_hash(bytes);
}

}  // namespace

std::string describe_samples(const dataset& samples) {
  auto extents = samples.sample_extents().extents();
  extents.erase(extents.begin());
  return std::to_string(samples.num_samples()) + " samples of " + to_string(shape(std::move(extents)));
}

std::string describe_content(dataset& samples) {
  return std::string(to_string(samples.samples().dtype())) + ", labels " + describe(samples.labels()) + ", " +
         hash_of_some({samples.samples(), samples.labels()});
}

std::string describe_inputs(dataset& samples) {
  return std::string(to_string(samples.samples().dtype())) + ", " + hash_of_some({samples.samples()});
}

}  // namespace troupe
