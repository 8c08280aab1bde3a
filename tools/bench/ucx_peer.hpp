#pragma once
#include <cstdint>
#include <optional>

namespace troupe::bench {

/// Whether ucx_perftest is installed (Debian: ucx-utils).
bool has_ucx_perftest();

/// One way's latency of ucx_perftest's active messages in sleeping mode, over the transports our data plane
/// uses: the median of `iterations`, in us. None if it could not be measured.
std::optional<double> ucx_latency_us(std::int64_t size_bytes, int iterations);

}  // namespace troupe::bench
