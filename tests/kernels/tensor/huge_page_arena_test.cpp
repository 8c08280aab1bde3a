#include "troupe/tensor/detail/huge_page_arena.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

using troupe::huge_page_arena;

namespace {

struct block {
  std::byte* begin;
  std::size_t size;
  std::byte mark;

  bool is_intact() const {
    return std::all_of(begin, begin + size, [&](std::byte each) { return each == mark; });
  }
};

block take_marked(huge_page_arena& from, std::size_t size, int number) {
  block taken{from.allocate(size), size, static_cast<std::byte>(number)};
  REQUIRE(taken.begin != nullptr);
  REQUIRE(reinterpret_cast<std::uintptr_t>(taken.begin) % 64 == 0);
  std::fill_n(taken.begin, size, taken.mark);
  return taken;
}

}  // namespace

TEST_CASE("blocks of shared pages keep their contents while other blocks are allocated and freed") {
  huge_page_arena regions;
  std::vector<block> held;
  for (int number = 0; number < 200; ++number) {
    held.push_back(take_marked(regions, 1 + static_cast<std::size_t>(number * 9173) % 300'000, number));
    if (number % 3 == 0) {
      regions.deallocate(held.front().begin, held.front().size);
      held.erase(held.begin());
    }
  }
  CHECK(std::ranges::all_of(held, &block::is_intact));
  for (const auto& each : held) regions.deallocate(each.begin, each.size);
  CHECK(regions.num_regions() == 0);
}

TEST_CASE("a region holds a fixed number of blocks, and is returned to the system with its last one") {
  huge_page_arena regions;
  constexpr auto size = huge_page_arena::largest_block;
  std::vector<block> held;
  for (int number = 0; number < 4; ++number) held.push_back(take_marked(regions, size, number));
  CHECK(regions.num_regions() == 2);  // with the gaps three fit into one
  for (int number = 0; number < 3; ++number) regions.deallocate(held[number].begin, size);
  CHECK(regions.num_regions() == 1);
  CHECK(held[3].is_intact());
  regions.deallocate(held[3].begin, size);
  CHECK(regions.num_regions() == 0);
  auto again = take_marked(regions, 1, 5);
  CHECK(again.is_intact());
}

TEST_CASE("freed pages of a region in use are returned to the system") {
  huge_page_arena regions;
  auto stays = take_marked(regions, 1000, 1), goes = take_marked(regions, 100'000, 2);
  regions.deallocate(goes.begin, goes.size);
  CHECK(goes.begin[50'000] == std::byte{0});  // a fresh page
  CHECK(stays.is_intact());
}
