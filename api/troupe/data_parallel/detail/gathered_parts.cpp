#include "troupe/data_parallel/detail/gathered_parts.hpp"

#include <cstring>
#include <numeric>

namespace troupe::detail {
namespace {

tensor gather(const tensor& part, const std::vector<std::int64_t>& parts, communicator& group) {
  auto total = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  auto all = tensor::zeros({total}, part.dtype(), group.device());
  group.all_gather(part.to(group.device()), all, parts, {.progress = progress_by::waiter}).wait();
  return all.to(device{});
}

}  // namespace

std::vector<tensor> gather_parts(const tensor& own, communicator& group) {
  auto num_members = static_cast<std::size_t>(group.size());
  auto size = tensor::from<std::int64_t>(std::vector{own.num_elements()}, {1});
  auto sizes = gather(size, std::vector<std::int64_t>(num_members, 1), group);
  std::vector<std::int64_t> parts(sizes.values<std::int64_t>().begin(), sizes.values<std::int64_t>().end());
  auto all = gather(own, parts, group);
  std::vector<tensor> result;
  std::int64_t first = 0;
  for (auto count : parts) {
    result.push_back(all.rows(first, count));
    first += count;
  }
  return result;
}

std::vector<std::string> gather_texts(const std::string& own, communicator& group) {
  auto part = tensor::empty({static_cast<std::int64_t>(own.size())}, dtype::u8);
  std::memcpy(part.bytes().data(), own.data(), own.size());
  std::vector<std::string> texts;
  for (const auto& each : gather_parts(part, group))
    texts.emplace_back(reinterpret_cast<const char*>(each.bytes().data()), each.size_bytes());
  return texts;
}

}  // namespace troupe::detail
