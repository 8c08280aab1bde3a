#include "troupe/layout/shard_layout.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

using troupe::layout::assign_to_shards;
using troupe::layout::shard_block;
using troupe::layout::shard_granularity;
using troupe::layout::shard_piece;

namespace {

using sizes = std::vector<std::int64_t>;

std::vector<std::int64_t> held_by_shards(const std::vector<shard_piece>& pieces, int num_shards) {
  std::vector<std::int64_t> held(static_cast<std::size_t>(num_shards));
  for (const auto& each : pieces) held[static_cast<std::size_t>(each.shard)] += each.count;
  return held;
}

/// Every element is in one piece, and pieces come in order.
void require_cover(const sizes& of, const std::vector<shard_piece>& pieces) {
  auto next = pieces.begin();
  for (std::size_t tensor = 0; tensor < of.size(); ++tensor) {
    std::int64_t end = 0;
    for (; next != pieces.end() && next->tensor == tensor; ++next) {
      CHECK(next->first == end);
      CHECK((next->count > 0 || of[tensor] == 0));
      end += next->count;
    }
    CHECK(end == of[tensor]);
  }
  CHECK(next == pieces.end());
}

}  // namespace

TEST_CASE("every shard has as many blocks of a large tensor") {
  CHECK(assign_to_shards(sizes{4 * shard_block}, 2, shard_granularity::blocks) ==
        std::vector<shard_piece>{{0, 0, 2 * shard_block, 0}, {0, 2 * shard_block, 2 * shard_block, 1}});
  // The last block is shorter.
  CHECK(assign_to_shards(sizes{2 * shard_block + 1}, 2, shard_granularity::blocks) ==
        std::vector<shard_piece>{{0, 0, shard_block, 1}, {0, shard_block, shard_block + 1, 0}});
}

TEST_CASE("a tensor of one block, or fewer elements, is one shard's") {
  CHECK(assign_to_shards(sizes{shard_block, 1, shard_block - 1}, 2, shard_granularity::blocks) ==
        std::vector<shard_piece>{{0, 0, shard_block, 0}, {1, 0, 1, 1}, {2, 0, shard_block - 1, 1}});
}

TEST_CASE("where tensors are not cut, the largest ones are assigned first") {
  CHECK(assign_to_shards(sizes{1, 5 * shard_block, 3 * shard_block, 2 * shard_block}, 2,
                         shard_granularity::tensors) == std::vector<shard_piece>{{0, 0, 1, 0},
                                                                                 {1, 0, 5 * shard_block, 0},
                                                                                 {2, 0, 3 * shard_block, 1},
                                                                                 {3, 0, 2 * shard_block, 1}});
}

TEST_CASE("shards may have nothing, and tensors no elements") {
  CHECK(assign_to_shards(sizes{7, 0}, 3, shard_granularity::blocks) ==
        std::vector<shard_piece>{{0, 0, 7, 0}, {1, 0, 0, 0}});
  CHECK(assign_to_shards({}, 3, shard_granularity::tensors).empty());
}

TEST_CASE("drawn tensors are assigned once, along blocks, and evenly") {
  auto seed = GENERATE(range(0u, 100u));
  std::mt19937 draw(seed);
  auto below = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most - 1)(draw);
  };
  auto granularity = seed % 2 == 0 ? shard_granularity::blocks : shard_granularity::tensors;
  auto num_shards = static_cast<int>(1 + below(9));
  sizes of;
  for (auto count = below(20); count > 0; --count) {
    const std::int64_t drawn[] = {below(100), shard_block - 1 + below(3), below(40 * shard_block)};
    of.push_back(drawn[below(3)]);
  }
  auto pieces = assign_to_shards(of, num_shards, granularity);
  require_cover(of, pieces);
  for (const auto& each : pieces) {
    CHECK(each.first % shard_block == 0);
    auto end = each.first + each.count;
    CHECK((end == of[each.tensor] || end % shard_block == 0));
    if (granularity == shard_granularity::tensors) CHECK(each.count == of[each.tensor]);
  }
  auto held = held_by_shards(pieces, num_shards);
  auto largest = granularity == shard_granularity::blocks || of.empty() ? shard_block : std::ranges::max(of);
  CHECK(std::ranges::max(held) - std::ranges::min(held) <= largest);
}

TEST_CASE("no shards, and sizes below 0, are refused") {
  CHECK_THROWS_AS(assign_to_shards(sizes{1}, 0, shard_granularity::blocks), std::invalid_argument);
  CHECK_THROWS_AS(assign_to_shards(sizes{-1}, 1, shard_granularity::blocks), std::invalid_argument);
}

TEST_CASE("tensors in a row are cut between blocks, nearest to even, and later cuts make up for it") {
  constexpr auto block = shard_block;
  auto cut = [](const sizes& of, const sizes& held,
                shard_granularity granularity = shard_granularity::blocks) {
    return troupe::layout::cut_into_shards(of, held, granularity);
  };
  CHECK(cut({4 * block}, {0, 0}) == sizes{2 * block, 2 * block});
  CHECK(cut({3 * block}, {0, 0}) == sizes{block, 2 * block});  // of two equally near cuts the first
  CHECK(cut({3 * block}, {block, 0}) == sizes{block, 2 * block});
  CHECK(cut({3 * block}, {0, block}) == sizes{2 * block, block});
  CHECK(cut({10, 20, 30}, {0, 0, 0}) == sizes{10, 20, 30});
  CHECK(cut({10, 11, 30}, {0, 0, 0}) == sizes{21, 0, 30});
  CHECK(cut({10, 20, 30}, {0, 90, 90}) == sizes{60, 0, 0});
  CHECK(cut({100, block + 5}, {0, 0}) == sizes{100, block + 5});
  CHECK(cut({}, {0, 5}) == sizes{0, 0});
  CHECK(cut({5 * block, 16, 5 * block}, {0, 0}, shard_granularity::tensors) ==
        sizes{5 * block, 5 * block + 16});
  CHECK(cut({7 * block}, {0, 0, 0}, shard_granularity::tensors) == sizes{0, 7 * block, 0});
  CHECK_THROWS_AS(cut({1}, {}), std::invalid_argument);
  CHECK_THROWS_AS(cut({-1}, {0}), std::invalid_argument);
  sizes held(7);
  for (std::int64_t unit = 0; unit < 40; ++unit) {
    auto parts = cut({(unit % 5) * block + 48, 16, 3 * block}, held);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK(parts[i] >= 0);
      held[i] += parts[i];
      sum += parts[i];
    }
    CHECK(sum == (unit % 5 + 3) * block + 64);
  }
  auto [least, most] = std::ranges::minmax(held);
  CHECK(most - least <= 2 * block);
}
