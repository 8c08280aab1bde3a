#include "troupe/parallel/bucket_plan.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::int64_t elements_of_a_cache_line = 16;
constexpr std::int64_t bytes_of_an_element = 4;
constexpr std::int64_t least_piece_bytes = std::int64_t{1} << 16;  // below, calls cost more than their bytes

void add(planned_bucket& to, int index, const named_parameter& added) {
  const auto& extents = added.target->extents;
  to.parameters.push_back(index);
  to.parts.push_back({added.name, extents, to.num_elements});
  auto lines = (extents.num_elements() + elements_of_a_cache_line - 1) / elements_of_a_cache_line;
  to.num_elements += lines * elements_of_a_cache_line;
}

/// As few as have no more than `most_bytes` each.
void cut(planned_bucket& bucket, std::int64_t most_bytes) {
  auto most_lines =
      std::max(most_bytes, least_piece_bytes) / (elements_of_a_cache_line * bytes_of_an_element);
  auto lines = bucket.num_elements / elements_of_a_cache_line;
  auto num_pieces = (lines + most_lines - 1) / most_lines;
  for (std::int64_t i = 0; i < num_pieces; ++i) {
    auto first = lines * i / num_pieces, end = lines * (i + 1) / num_pieces;
    bucket.pieces.push_back({first * elements_of_a_cache_line, (end - first) * elements_of_a_cache_line});
  }
}

}  // namespace

std::vector<planned_bucket> plan_buckets(const std::vector<named_parameter>& parameters,
                                         const bucket_limits& limits) {
  std::int64_t all_bytes = 0;
  for (const auto& each : parameters) all_bytes += each.target->extents.num_elements() * bytes_of_an_element;
  auto usual_bytes = std::min(limits.bytes, std::max(limits.first_bytes, all_bytes / 8));
  std::vector<planned_bucket> result;
  bool is_open = false;
  for (auto index = static_cast<int>(parameters.size()) - 1; index >= 0; --index) {
    if (!is_open) result.emplace_back();
    add(result.back(), index, parameters[static_cast<std::size_t>(index)]);
    auto limit = result.size() == 1 ? limits.first_bytes : usual_bytes;
    is_open = result.back().num_elements * bytes_of_an_element < limit;
  }
  for (auto& each : result) cut(each, usual_bytes);
  return result;
}

}  // namespace troupe
