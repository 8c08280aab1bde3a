#include "troupe/scheduler/state/distributed_hash.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

using namespace troupe;
using actors::scheduler::distributed_hash;
using names = std::vector<std::string>;

TEST_CASE("stages hash their parameters in turn, in the order of names") {
  distributed_hash hash(2);
  CHECK_FALSE(hash.add({.stage = 1}, {"b", "d", "c"}, {0, 0, 0}));
  CHECK_FALSE(hash.add({.stage = 1}, {"b", "d", "c"}, {0, 0, 0}));  // told again
  CHECK(hash.add({.stage = 0}, {"e", "a"}, {0, 0}));
  CHECK_FALSE(hash.add({.stage = 0}, {"e", "a"}, {0, 0}));
  std::vector<std::pair<std::uint32_t, names>> turns;
  snapshot::weights_hasher expected;
  while (auto turn = hash.next_turn()) {
    turns.emplace_back(turn->holder.stage, turn->names);
    CHECK_FALSE(hash.on_hashed(turn->num_hashed, turn->state));  // an answer to the turn before
    snapshot::weights_hasher hasher(turn->state);
    for (const auto& name : turn->names)
      for (auto* each : {&hasher, &expected}) each->add(tensor::full({3}, static_cast<float>(name[0])));
    CHECK(hash.on_hashed(turn->num_hashed + turn->names.size(), hasher.state()));
  }
  CHECK(turns == std::vector<std::pair<std::uint32_t, names>>{{0, {"a"}}, {1, {"b", "c", "d"}}, {0, {"e"}}});
  CHECK(hash.hex() == expected.hex());
}

TEST_CASE("stages without parameters have no turn, and a name that two stages have is refused") {
  distributed_hash hash(3);
  hash.add({.stage = 0}, {}, {});
  hash.add({.stage = 2}, {"w"}, {0});
  CHECK_FALSE(hash.on_hashed(1, snapshot::weights_hasher().state()));  // the stages are not all known
  CHECK(hash.add({.stage = 1}, {}, {}));
  CHECK(hash.next_turn()->holder.stage == 2);
  distributed_hash none(1);
  CHECK(none.add({.stage = 0}, {}, {}));
  CHECK_FALSE(none.next_turn());
  CHECK(none.hex() == snapshot::weights_hasher().hex());
  distributed_hash twice(2);
  twice.add({.stage = 0}, {"w"}, {0});
  CHECK_THROWS_WITH(twice.add({.stage = 1}, {"w"}, {0}), Catch::Matchers::ContainsSubstring("'w' twice"));
}

TEST_CASE("replicas that own pieces of parameters hash them one after the other") {
  distributed_hash hash(3);
  CHECK_FALSE(hash.add({.stage = 0, .replica = 1}, {"a", "b"}, {4, 0}));
  CHECK_FALSE(hash.add({.stage = 0, .replica = 0}, {"a", "c"}, {0, 0}));
  CHECK(hash.add({.stage = 0, .replica = 2}, {"a"}, {8}));
  std::vector<std::pair<std::uint32_t, names>> turns;
  while (auto turn = hash.next_turn()) {
    turns.emplace_back(turn->holder.replica, turn->names);
    CHECK(hash.on_hashed(turn->num_hashed + turn->names.size(), turn->state));
  }
  CHECK(turns == std::vector<std::pair<std::uint32_t, names>>{
                     {0, {"a"}}, {1, {"a"}}, {2, {"a"}}, {1, {"b"}}, {0, {"c"}}});
  distributed_hash other(2);
  CHECK_THROWS_AS(other.add({.stage = 0}, {"a", "b"}, {0}), std::invalid_argument);
}
