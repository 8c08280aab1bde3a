#include "troupe/gatherer/gathered_cache.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <vector>

using namespace troupe;
using namespace troupe::actors::gatherer;

namespace {

constexpr std::size_t tensor_bytes = 4 * sizeof(float) + gathered_cache::tensor_overhead_bytes;

gathered_cache::by_index tensors(std::uint32_t num) {
  gathered_cache::by_index made;
  for (std::uint32_t index = 0; index < num; ++index)
    made.emplace(index, tensor::full({4}, static_cast<float>(index)));
  return made;
}

std::vector<std::uint32_t> indices(const gathered_cache& kept, std::uint32_t call) {
  std::vector<std::uint32_t> found;
  for (const auto& [index, value] : kept.find(call)) found.push_back(index);
  return found;
}

}  // namespace

TEST_CASE("two neighbouring processes keep each tensor, so that the loss of one process loses none") {
  constexpr int world_size = 5;
  std::map<std::uint32_t, std::set<int>> keepers;
  for (int rank = 0; rank < world_size; ++rank) {
    gathered_cache kept(rank, world_size, 0);
    kept.add(3, tensors(12));
    for (auto index : indices(kept, 3)) keepers[index].insert(rank);
  }
  REQUIRE(keepers.size() == 12);
  for (const auto& [index, ranks] : keepers) CHECK(ranks.size() == 2);
}

TEST_CASE("a process alone keeps nothing") {
  gathered_cache kept(0, 1, 1 << 20);
  kept.add(0, tensors(4));
  CHECK(kept.find(0).empty());
  CHECK(kept.size_bytes() == 0);
}

TEST_CASE("the newest call's tensors are kept whatever their size, older ones up to the limit") {
  gathered_cache kept(0, 2, 5 * tensor_bytes);
  kept.add(0, tensors(2));
  kept.add(1, tensors(2));
  CHECK(kept.size_bytes() == 4 * tensor_bytes);
  kept.add(2, tensors(2));
  CHECK(kept.find(0).empty());
  CHECK(indices(kept, 1) == std::vector<std::uint32_t>{0, 1});
  kept.add(3, tensors(9));
  CHECK(kept.find(2).empty());
  CHECK(indices(kept, 3).size() == 9);
  CHECK(kept.size_bytes() == 9 * tensor_bytes);
}

TEST_CASE("a restarted process accepts older calls after newer ones, and each once") {
  gathered_cache kept(0, 2, 2 * tensor_bytes);
  kept.add(7, tensors(1));
  kept.add(4, tensors(1));
  kept.add(4, tensors(1));
  CHECK(kept.size_bytes() == 2 * tensor_bytes);
  kept.add(5, tensors(1));
  CHECK(kept.find(4).empty());
  CHECK(indices(kept, 7).size() == 1);
}

TEST_CASE("the results of many calls that deliver almost nothing are bounded in number too") {
  constexpr std::size_t limit = 100 * gathered_cache::tensor_overhead_bytes;
  gathered_cache kept(0, 2, limit);
  for (std::uint32_t call = 0; call < 1000; ++call) kept.add(call, {{0, tensor::empty({0})}});
  CHECK(kept.size_bytes() <= limit);
  CHECK(kept.find(899).empty());
  CHECK(kept.find(900).size() == 1);
  CHECK(kept.find(999).size() == 1);
}
