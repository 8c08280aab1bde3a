#include "troupe/collective/direct/algorithms.hpp"

namespace troupe::direct {

algorithm barrier(meeting at) {
  at.come_with([](int) { return std::span<const std::byte>(); });
  co_await until([&] { return at.everyone_is_here(); });
}

}  // namespace troupe::direct
