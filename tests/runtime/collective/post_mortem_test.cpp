#include "troupe/collective/post_mortem.hpp"
#include "troupe/collective/folder_store.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("members of a failed group read each other's last words, and see who left none") {
  temp_folder folder;
  folder_store place(folder.path());
  auto grace = std::chrono::milliseconds(20);
  post_mortem first({"g", {4, 7, 9}, 0}, place, grace), third({"g", {4, 7, 9}, 2}, place, grace);
  first.leave({7, "is in call 7, barrier"});
  third.leave({6,
               "has finished call 6, barrier",
               collective_failure::lost_member,
               {7, 9},
               "rank 7 ended\nits calls:\n"});
  for (auto* reader : {&first, &third}) {
    auto words = reader->read();
    REQUIRE(words.size() == 3);
    CHECK(words[0]->sequence == 7);
    CHECK(words[0]->doing == "is in call 7, barrier");
    CHECK_FALSE(words[0]->gave_up.has_value());
    CHECK(words[0]->cause.empty());
    CHECK_FALSE(words[1].has_value());
    CHECK(words[2]->gave_up == collective_failure::lost_member);
    CHECK(words[2]->ranks == std::vector{7, 9});
    CHECK(words[2]->cause == "rank 7 ended\nits calls:\n");
  }
}

TEST_CASE("last words replace earlier ones, and are those of one group") {
  temp_folder folder;
  folder_store place(folder.path());
  auto grace = std::chrono::milliseconds(5);
  post_mortem one({"g", {0, 1}, 0}, place, grace), other({"g", {0, 2}, 0}, place, grace);
  one.leave({1, "first"});
  one.leave({2, "second"});
  CHECK(one.read()[0]->doing == "second");
  CHECK_FALSE(other.read()[0].has_value());
}
