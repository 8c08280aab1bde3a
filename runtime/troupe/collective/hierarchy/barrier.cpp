#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/host_messages.hpp"

namespace troupe::hierarchy {

algorithm barrier(site at) {
  at.near.come_with([](int) { return std::span<const std::byte>(); });
  co_await until([&] { return at.near.everyone_is_here(); });
  auto arrivals = every_host_has_come(at);
  co_await finished(arrivals);
  co_await until([&] { return at.far.all_done(); });
}

}  // namespace troupe::hierarchy
