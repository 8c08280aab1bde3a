#include "troupe/job/trained_data.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>
#include <string>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::actors::job;

namespace {

// Their addresses stand for data sets.
const int one = 0, other = 0;

}  // namespace

TEST_CASE("each step has the data of the training call that it belongs to") {
  trained_data all;
  CHECK(all.at(0).empty());
  all.add(0, 10, &one, "a");
  all.add(10, 30, &one, "a");
  all.add(20, 40, &other, "b");  // the call before it was cancelled after 20 steps
  CHECK(all.at(0).empty());
  CHECK(all.at(1) == "a");
  CHECK(all.at(20) == "a");
  CHECK(all.at(21) == "b");
  CHECK(all.at(40) == "b");
  CHECK(all.at(41).empty());  // a step of the program's own
  all.add(45, 60, &one, "a");
  CHECK(all.at(45).empty());
  CHECK(all.at(46) == "a");
}

TEST_CASE("another data set begins with its first step, and one that comes again goes on where it was") {
  trained_data all;
  all.add(0, 10, &one, "a");
  CHECK(all.position_of(&one, 0) == 0);
  CHECK(all.position_of(&one, 9) == 9);
  all.add(10, 30, &other, "b");
  CHECK(all.position_of(&other, 10) == 0);
  CHECK(all.position_of(&other, 17) == 7);
  CHECK(all.position_of(&one, 9) == 9);  // as a recovery asks
  all.add(15, 20, &one, "a");            // b was cancelled after 5 of its steps
  CHECK(all.position_of(&one, 15) == 10);
  CHECK(all.position_of(&other, 14) == 4);
  all.add(20, 30, &other, "b");
  CHECK(all.position_of(&other, 20) == 5);
  all.add(20, 30, &one, "a");  // b was cancelled before a step
  CHECK(all.position_of(&one, 29) == 24);
  all.add(33, 40, &one, "a");  // after three steps of the program's own
  CHECK(all.position_of(&one, 33) == 28);
  all.add(42, 50, &other, "b");
  all.add(50, 60, &one, "a");  // which had two more after step 40
  CHECK(all.position_of(&other, 42) == 5);
  CHECK(all.position_of(&one, 50) == 37);
}

TEST_CASE("steps of the program's own before the first data set count as steps of it") {
  trained_data all;
  all.add(2, 5, &one, "a");
  CHECK(all.position_of(&one, 2) == 2);
}

TEST_CASE("a job that resumes within a training call goes on with the same data only") {
  trained_data all;
  all.resume(17, "a");
  CHECK_NOTHROW(all.add(0, 10, &one, "of an earlier call"));
  CHECK_THROWS_WITH(all.add(10, 20, &other, "b"),
                    ContainsSubstring("the snapshot of step 17") && ContainsSubstring("expected a, got b"));
  CHECK_NOTHROW(all.add(10, 20, &other, "a"));
  CHECK_NOTHROW(all.add(10, 17, &one, "b"));  // trains nothing more
  CHECK_NOTHROW(all.add(17, 30, &one, "b"));
}

TEST_CASE("data that a snapshot does not know are not compared") {
  for (const auto& resumed : {std::optional<std::string>(), std::optional<std::string>("")}) {
    trained_data all;
    all.resume(17, resumed);
    CHECK_NOTHROW(all.add(10, 20, &one, "a"));
  }
}
