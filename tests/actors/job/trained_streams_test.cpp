#include "troupe/job/trained_streams.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;

TEST_CASE("each step has the stream of the training call that it belongs to") {
  trained_streams streams;
  CHECK(streams.at(0).empty());
  streams.add(0, 10, "a");
  streams.add(10, 30, "");
  streams.add(20, 40, "b");  // the call before it was cancelled after 20 steps
  CHECK(streams.at(0).empty());
  CHECK(streams.at(1) == "a");
  CHECK(streams.at(10) == "a");
  CHECK(streams.at(11).empty());
  CHECK(streams.at(20).empty());
  CHECK(streams.at(21) == "b");
  CHECK(streams.at(40) == "b");
  streams.add(40, 50, "b");
  streams.add(50, 60, "a");
  CHECK(streams.at(50) == "b");
  CHECK(streams.at(51) == "a");
}

TEST_CASE("a job that resumes within a training call goes on with the same stream only") {
  for (std::string resumed : {"a", ""}) {
    trained_streams streams;
    streams.resume(17, resumed);
    CHECK_NOTHROW(streams.add(0, 10, "of an earlier call"));
    CHECK_THROWS_WITH(streams.add(10, 20, "b"),
                      ContainsSubstring("the snapshot of step 17") && ContainsSubstring("found b"));
    CHECK_NOTHROW(streams.add(10, 20, resumed));
    CHECK_NOTHROW(streams.add(10, 17, "b"));  // trains nothing more
    CHECK_NOTHROW(streams.add(17, 30, "b"));
  }
}
