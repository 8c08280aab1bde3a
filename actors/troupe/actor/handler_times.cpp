#include "troupe/actor/handler_times.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace troupe::actors::actor {
namespace {

constexpr int first_bound_log2 = 10;

}  // namespace

std::size_t handler_bucket(std::int64_t time_ns) {
  auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(0, time_ns)) >> first_bound_log2;
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(time)), num_handler_buckets - 1);
}

double handler_bucket_bound_s(std::size_t bucket) {
  auto bound = std::min(bucket, num_handler_buckets - 2);
  return std::ldexp(1e-9, first_bound_log2 + static_cast<int>(bound));
}

double handler_quantile_s(const std::vector<std::uint64_t>& counts, double fraction) {
  auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  auto wanted = fraction * total;
  double below = 0;
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    auto here = static_cast<double>(counts[bucket]);
    if (here > 0 && below + here >= wanted) {
      auto begin = bucket == 0 ? 0 : handler_bucket_bound_s(bucket - 1);
      return begin + (handler_bucket_bound_s(bucket) - begin) * (wanted - below) / here;
    }
    below += here;
  }
  return 0;
}

}  // namespace troupe::actors::actor
