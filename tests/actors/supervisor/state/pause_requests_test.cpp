#include "troupe/supervisor/state/pause_requests.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::supervisor;

namespace {

actors::job::pause_request with_id(std::uint64_t id) {
  actors::job::pause_request request;
  request.id = id;
  return request;
}

/// `version` requests were carried out, the last with this id.
actors::job::pause_state state_of(std::uint64_t version, std::uint64_t request) {
  actors::job::pause_state state;
  state.version = version;
  state.request = request;
  return state;
}

/// The id of the next request and what it is based on.
std::pair<std::uint64_t, std::uint64_t> sent_by(pause_requests& requests) {
  auto next = requests.next();
  REQUIRE(next);
  return {next->request.id, next->based_on};
}

using sent = std::pair<std::uint64_t, std::uint64_t>;

}  // namespace

TEST_CASE("requests are sent one at a time, each based on the state that the one before has made") {
  pause_requests requests;
  CHECK_FALSE(requests.next());
  requests.add(with_id(11));
  requests.add(with_id(12));
  CHECK(sent_by(requests) == sent{11, 0});
  CHECK_FALSE(requests.next());
  CHECK(requests.learn(state_of(1, 11)));
  CHECK(sent_by(requests) == sent{12, 1});
  CHECK(requests.learn(state_of(2, 12)));
  CHECK_FALSE(requests.next());
  CHECK(requests.known() == state_of(2, 12));
}

TEST_CASE("a request that came after another process's is sent again, based on the newer state") {
  pause_requests requests;
  requests.add(with_id(11));
  CHECK(sent_by(requests) == sent{11, 0});
  CHECK(requests.learn(state_of(1, 77)));
  CHECK(sent_by(requests) == sent{11, 1});
}

TEST_CASE("a state of the version that a request is based on is no answer to it") {
  pause_requests requests;
  requests.add(with_id(11));
  CHECK(sent_by(requests) == sent{11, 0});
  CHECK(requests.learn(state_of(0, 0)));
  CHECK_FALSE(requests.next());
}

TEST_CASE("an older state is not learned") {
  pause_requests requests;
  CHECK(requests.learn(state_of(3, 9)));
  CHECK_FALSE(requests.learn(state_of(2, 8)));
  CHECK(requests.known() == state_of(3, 9));
}

TEST_CASE("a new generation repeats the request that has no answer, and not one that was carried out") {
  pause_requests requests;
  requests.add(with_id(11));
  CHECK(sent_by(requests) == sent{11, 0});
  requests.begin_generation();
  CHECK(sent_by(requests) == sent{11, 0});
  SECTION("the last scheduler had not carried it out") {
    CHECK(requests.learn(state_of(0, 0)));
    CHECK_FALSE(requests.next());
  }
  SECTION("the last scheduler had carried it out") {
    CHECK(requests.learn(state_of(1, 11)));
    CHECK_FALSE(requests.next());
  }
}
