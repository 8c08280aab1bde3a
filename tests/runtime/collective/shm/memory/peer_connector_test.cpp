#include "troupe/collective/shm/memory/peer_connector.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>
#include <vector>

using namespace troupe;
using namespace troupe::collective;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using std::chrono::steady_clock;

namespace {

/// While it lives, this process can have no further descriptors, or those that are allowed.
class few_descriptors {
 public:
  few_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    int next = ::dup(0);
    rlimit few{static_cast<rlim_t>(next) + 8, before_.rlim_max};
    ::close(next);
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) held_.emplace_back(fd);
  }
  ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  few_descriptors(const few_descriptors&) = delete;
  few_descriptors& operator=(const few_descriptors&) = delete;
  void allow(std::size_t count) { held_.resize(held_.size() - count); }

 private:
  rlimit before_{};
  std::vector<posix::unique_fd> held_;
};

/// Connections to `address` until its queue is full, while it lives.
class full_queue {
 public:
  explicit full_queue(const std::string& address) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    if (before_.rlim_max < 2 * SOMAXCONN) SKIP("this user may not have enough descriptors (ulimit -Hn)");
    rlimit most{before_.rlim_max, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &most);
    while (auto made = posix::connect_privately(address)) held_.push_back(std::move(made));
  }
  ~full_queue() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  full_queue(const full_queue&) = delete;
  full_queue& operator=(const full_queue&) = delete;
  void leave() { held_.clear(); }

 private:
  rlimit before_{};
  std::vector<posix::unique_fd> held_;
};

constexpr std::uint64_t lowest_process = 0;  // such a process connects to this one, which waits for it

}  // namespace

TEST_CASE("waiting for a process to connect ends when that process is lost") {
  posix::wake_event event;
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
  posix::wake_event event;
  peer_connector own("token", {event.fd(), event.fd()});
  CHECK_THROWS_MATCHES(own.connection_to(lowest_process, "nowhere", steady_clock::now(), [] {}),
                       std::runtime_error, MessageMatches(ContainsSubstring("did not connect")));
}

TEST_CASE("descriptors that have run out are named to both processes, with the limit and what to do") {
  posix::wake_event event;
  peer_connector one("token", {event.fd(), event.fd()}), other("token", {event.fd(), event.fd()});
  auto& connects = one.process() < other.process() ? one : other;
  auto& waits = &connects == &one ? other : one;
  auto in_an_hour = steady_clock::now() + std::chrono::hours(1);
  auto says_what_to_do = MessageMatches(ContainsSubstring("ulimit -n"));
  few_descriptors left;
  CHECK_THROWS_MATCHES(connects.connection_to(waits.process(), waits.address(), in_an_hour, [] {}),
                       std::runtime_error,
                       says_what_to_do && MessageMatches(ContainsSubstring("this process may have")));
  left.allow(2);  // the two ends of the connection, and none for what is sent over it
  CHECK_THROWS_MATCHES(connects.connection_to(waits.process(), waits.address(), in_an_hour, [] {}),
                       std::runtime_error, says_what_to_do);
  CHECK_THROWS_MATCHES(
      waits.connection_to(connects.process(), connects.address(), in_an_hour, [] {}), std::runtime_error,
      says_what_to_do && MessageMatches(ContainsSubstring("its descriptors cannot be taken")));
}

TEST_CASE("a process whose memory cannot be mapped is told as such to both, at once") {
  posix::wake_event event;  // which is no memory
  peer_connector one("token", {event.fd(), event.fd()}), other("token", {event.fd(), event.fd()});
  auto& connects = one.process() < other.process() ? one : other;
  auto& waits = &connects == &one ? other : one;
  auto in_an_hour = steady_clock::now() + std::chrono::hours(1);
  CHECK_THROWS_AS(connects.connection_to(waits.process(), waits.address(), in_an_hour, [] {}),
                  std::runtime_error);
  CHECK_THROWS_MATCHES(waits.connection_to(connects.process(), connects.address(), in_an_hour, [] {}),
                       std::runtime_error, MessageMatches(ContainsSubstring("it has connected, but ")));
}

TEST_CASE("a process waits for a place in a full queue of connections") {
  posix::wake_event event;
  group_memory groups;
  peer_connector one("token", {event.fd(), groups.descriptor()}),
      other("token", {event.fd(), groups.descriptor()});
  auto& connects = one.process() < other.process() ? one : other;
  auto& waits = &connects == &one ? other : one;
  full_queue queue(waits.address());
  int num_checks = 0;
  auto leave_at_second_check = [&] {
    if (++num_checks == 2) queue.leave();
  };
  auto in_an_hour = steady_clock::now() + std::chrono::hours(1);
  CHECK(connects.connection_to(waits.process(), waits.address(), in_an_hour, leave_at_second_check));
  CHECK(num_checks >= 2);
}
