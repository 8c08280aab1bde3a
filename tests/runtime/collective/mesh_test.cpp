#include "troupe/collective/mesh.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using ranks = std::vector<world_rank>;
using coordinates = std::vector<int>;
using names = std::vector<std::string>;

template <class Body>
void refused(Body body, const std::string& text) {
  CHECK_THROWS_MATCHES(body(), std::invalid_argument, MessageMatches(ContainsSubstring(text)));
}

}  // namespace

TEST_CASE("a mesh numbers its ranks with the last axis fastest") {
  troupe::collective::mesh grid({{"dp", 4}, {"tp", 2}}, 8);
  CHECK(grid.coordinates(5) == coordinates{2, 1});
  CHECK(grid.coordinate(5, "dp") == 2);
  CHECK(grid.coordinate(5, "tp") == 1);
  CHECK(grid.axis_size("dp") == 4);
  CHECK(grid.text() == "dp 4 x tp 2");
  for (int rank = 0; rank < 8; ++rank) CHECK(grid.rank_at(grid.coordinates(rank)) == rank);
}

TEST_CASE("a slice holds the ranks that differ along its axes only") {
  troupe::collective::mesh grid({{"pp", 2}, {"dp", 3}, {"tp", 2}}, 12);
  CHECK(grid.slice(7, {"tp"}) == ranks{6, 7});
  CHECK(grid.slice(7, {"dp"}) == ranks{7, 9, 11});
  CHECK(grid.slice(7, {"pp"}) == ranks{1, 7});
  CHECK(grid.slice(7, {"dp", "tp"}) == ranks{6, 7, 8, 9, 10, 11});
  CHECK(grid.slice(7, {"tp", "dp"}) == grid.slice(7, {"dp", "tp"}));
  CHECK(grid.slice(7, {"pp", "tp"}) == ranks{0, 1, 6, 7});
  CHECK(grid.slice(7, {}) == ranks{7});
  CHECK(grid.slice(7, {"pp", "dp", "tp"}).size() == 12);
}

TEST_CASE("the slices along any axes share the ranks out, and members agree on them") {
  troupe::collective::mesh grid({{"pp", 2}, {"dp", 5}, {"tp", 3}}, 30);
  for (const auto& along : {names{}, names{"pp"}, names{"dp"}, names{"tp"}, names{"pp", "tp"}}) {
    std::vector<int> count(30);
    for (const auto& members : grid.slices(along))
      for (auto rank : members) {
        ++count[static_cast<std::size_t>(rank)];
        CHECK(grid.slice(rank, along) == members);
      }
    CHECK(count == std::vector<int>(30, 1));
  }
}

TEST_CASE("a mesh may have one axis, or axes of size one") {
  CHECK(troupe::collective::mesh({{"dp", 7}}, 7).slice(3, {"dp"}) == ranks{0, 1, 2, 3, 4, 5, 6});
  troupe::collective::mesh alone({{"dp", 1}, {"tp", 1}}, 1);
  CHECK(alone.slice(0, {"tp"}) == ranks{0});
  CHECK(alone.coordinates(0) == coordinates{0, 0});
}

TEST_CASE("axes that do not fit the world are refused with both numbers") {
  refused(
      [] {
        troupe::collective::mesh({{"dp", 4}, {"tp", 3}}, 8);
      },
      "the world's 8 ranks, got dp 4 x tp 3");
  refused([] { troupe::collective::mesh({{"dp", 2}}, 8); }, "got dp 2");
  refused(
      [] {
        troupe::collective::mesh({{"dp", 1 << 20}, {"tp", 1 << 20}, {"pp", 1 << 24}}, 8);
      },
      "got dp 1048576");
  refused([] { troupe::collective::mesh({}, 8); }, "no axis");
}

TEST_CASE("axis names that are missing, duplicated or unknown are refused") {
  refused([] { troupe::collective::mesh({{"dp", 2}, {"dp", 2}}, 4); }, "'dp' twice");
  refused([] { troupe::collective::mesh({{"", 2}}, 2); }, "an empty one");
  refused([] { troupe::collective::mesh({{"dp", 0}}, 0); }, "dp 0");
  troupe::collective::mesh grid({{"dp", 4}, {"tp", 2}}, 8);
  refused([&] { (void)grid.slice(0, {"pp"}); }, "dp 4 x tp 2, got 'pp'");
  refused([&] { (void)grid.slice(0, {"dp", "dp"}); }, "'dp' twice");
  refused([&] { (void)grid.coordinate(0, "pp"); }, "'pp'");
  refused([&] { (void)grid.coordinates(8); }, "a rank in [0, 8), got 8");
  refused([&] { (void)grid.rank_at(coordinates{1}); }, "2 coordinates, got 1");
  refused([&] { (void)grid.rank_at(coordinates{1, 2}); }, "coordinate of tp in [0, 2), got 2");
}
