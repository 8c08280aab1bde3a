#include "troupe/data/describe_samples.hpp"

#include <algorithm>
#include <vector>

#include "troupe/program/job_description.hpp"

namespace troupe {

std::string describe_samples(const dataset& samples) {
  auto extents = samples.sample_extents().extents();
  extents.erase(extents.begin());
  return std::to_string(samples.num_samples()) + " samples of " + to_string(shape(std::move(extents)));
}

std::string describe_content(dataset& samples) {
  constexpr std::int64_t most_looked_at = 16;
  auto total = samples.num_samples();
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0, count = std::min(total, most_looked_at); i < count; ++i) {
    auto row = i * (total / count);
    for (const auto& of : {samples.samples().rows(row, 1), samples.labels().rows(row, 1)})
      bytes.insert(bytes.end(), of.bytes().begin(), of.bytes().end());
  }
  return std::string(to_string(samples.samples().type())) + ", labels " + describe(samples.labels()) + ", " +
         short_hash(bytes);
}

}  // namespace troupe
