#include "troupe/collective/shm/peer_connector.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using std::chrono::steady_clock;

namespace {

constexpr std::uint64_t lowest_process = 0;  // such a process connects to this one, which waits for it

}  // namespace

TEST_CASE("waiting for a process to connect ends when that process is lost") {
  wake_event event;
  peer_connector own("token", {event.fd(), event.fd()});
  int num_checks = 0;
  auto lost_at_second_check = [&num_checks] {
    if (++num_checks == 2) throw std::domain_error("rank 1 was lost");
  };
  // Without the check this waits for an hour.
  CHECK_THROWS_AS(own.connection_to(lowest_process, "nowhere", steady_clock::now() + std::chrono::hours(1),
                                    lost_at_second_check),
                  std::domain_error);
}

TEST_CASE("a process that does not connect in time is told as such") {
  wake_event event;
  peer_connector own("token", {event.fd(), event.fd()});
  CHECK_THROWS_MATCHES(own.connection_to(lowest_process, "nowhere", steady_clock::now(), [] {}),
                       std::runtime_error, MessageMatches(ContainsSubstring("did not connect")));
}
