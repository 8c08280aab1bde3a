#include "troupe/data_parallel/bucket_plan.hpp"

#include <algorithm>

#include "troupe/autograd/gradient_rows.hpp"

namespace troupe {
namespace {

constexpr std::int64_t elements_of_a_cache_line = 16;
constexpr std::int64_t bytes_of_an_element = 4;
constexpr std::int64_t min_chunk_bytes = std::int64_t{1} << 16;  // below, calls cost more than their bytes

std::int64_t in_whole_lines(std::int64_t num_elements) {
  return (num_elements + elements_of_a_cache_line - 1) / elements_of_a_cache_line * elements_of_a_cache_line;
}

/// The rows of a gradient that are computed together.
std::int64_t elements_of_a_block(const shape& extents) {
  if (extents.rank() == 0 || extents.num_elements() == 0) return 1;
  return extents.num_elements() / extents[0] * std::min(extents[0], gradient_rows_at_a_time(extents));
}

void add(planned_bucket& to, int index, const named_parameter& added) {
  const auto& extents = added.target->extents;
  to.parameters.push_back(index);
  to.parts.push_back({added.name, extents, to.num_elements});
  to.num_elements += in_whole_lines(extents.num_elements());
}

std::int64_t bytes_of(std::int64_t num_elements) { return num_elements * bytes_of_an_element; }

/// Adds elements [first, end) to the last chunk if it does not exceed `max_bytes` then; otherwise splits
/// them into the smallest number of equal new chunks of at most `max_bytes` each, in whole cache lines.
void add_elements(std::vector<bucket_chunk>& chunks, std::int64_t first, std::int64_t end,
                  std::int64_t max_bytes) {
  if (!chunks.empty() && bytes_of(chunks.back().count + end - first) <= max_bytes) {
    chunks.back().count += end - first;
    return;
  }
  auto lines = (end - first) / elements_of_a_cache_line;
  auto max_lines = max_bytes / bytes_of(elements_of_a_cache_line);
  auto num_chunks = (lines + max_lines - 1) / max_lines;
  for (std::int64_t i = 0; i < num_chunks; ++i) {
    auto from = lines * i / num_chunks, to = lines * (i + 1) / num_chunks;
    chunks.push_back({first + from * elements_of_a_cache_line, (to - from) * elements_of_a_cache_line});
  }
}

/// Splits a bucket into chunks at the boundaries of row blocks.
void cut(planned_bucket& bucket, std::int64_t max_bytes) {
  for (std::size_t i = 0; i < bucket.parts.size(); ++i) {
    const auto& part = bucket.parts[i];
    auto end = i + 1 < bucket.parts.size() ? bucket.parts[i + 1].first : bucket.num_elements;
    auto block = in_whole_lines(elements_of_a_block(part.extents));
    for (auto first = part.first; first < end; first += block)
      add_elements(bucket.chunks, first, std::min(first + block, end), max_bytes);
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
  for (auto& each : result) cut(each, std::max(usual_bytes, min_chunk_bytes));
  return result;
}

}  // namespace troupe
