#include "troupe/usage/nearest.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::usage;

TEST_CASE("a mistyped word is recognised, a word unlike all known ones is not") {
  std::vector<std::string> known{"--nproc-per-node", "--json", "--grace"};
  CHECK(meant_by("--jsn", known) == "--json");
  CHECK(meant_by("--nproc_per_node", known) == "--nproc-per-node");
  CHECK(meant_by("--frobnicate", known).empty());
  CHECK(meant_by("x", {}).empty());
}

TEST_CASE("the distance is the smallest number of letters to insert, delete or replace") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
}

TEST_CASE("names of other systems mean ours, for keys and for options") {
  CHECK(meant_by("lr", {"env", "learning_rate"}) == "learning_rate");
  CHECK(meant_by("--lr", {"--env", "--learning-rate"}) == "--learning-rate");
  CHECK(meant_by("--batch-size", {"--batch"}) == "--batch");
  CHECK(meant_by("lr", {"env"}).empty());
  CHECK(nearest_to("dataset", {"data"}).empty());
  CHECK(meant_by("dataset", {"data"}) == "data");
}
