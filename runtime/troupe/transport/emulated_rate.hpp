#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

namespace troupe::transport {

/// Bytes per second of an emulated link, to measure with; null or 0: none. May change at any time.
using emulated_rate = std::shared_ptr<const std::atomic<std::uint64_t>>;

}  // namespace troupe::transport
