#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::actors::actor {

/// A histogram of times whose bounds double. Bucket 0 counts times below 1.024 us (2^10 ns), bucket i those
/// from 2^(9+i) ns to below 2^(10+i) ns, and the last one all from 17.2 s (2^34 ns) on.
constexpr std::size_t num_handler_buckets = 26;

/// The bucket of a time.
std::size_t handler_bucket(std::int64_t time_ns);
/// Where a bucket ends, in seconds; of the last one: where it begins.
double handler_bucket_bound_s(std::size_t bucket);

/// The time in seconds that a fraction of all times does not exceed. It follows from `counts`, the number of
/// times in each bucket, as if the times of a bucket were spread evenly over it. So it may be off by a factor
/// of two, in bucket 0 by 1.024 us. Times of the last bucket count as 17.2 s. 0: there are none. `counts` may
/// end with the last bucket that is not empty.
double handler_quantile_s(const std::vector<std::uint64_t>& counts, double fraction);

}  // namespace troupe::actors::actor
