#include "troupe/scheduler/state/hash_relay.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace troupe;
using actors::scheduler::hash_relay;
using names = std::vector<std::string>;

TEST_CASE("stages hash their parameters in turn, in the order of names") {
  hash_relay relay(2);
  CHECK_FALSE(relay.add(1, {"b", "d", "c"}));
  CHECK_FALSE(relay.add(1, {"b", "d", "c"}));  // told again
  CHECK(relay.add(0, {"e", "a"}));
  CHECK_FALSE(relay.add(0, {"e", "a"}));
  std::vector<std::pair<std::uint32_t, names>> turns;
  snapshot::weights_hasher expected;
  while (auto turn = relay.next_turn()) {
    turns.emplace_back(turn->stage, turn->names);
    CHECK_FALSE(relay.on_hashed(turn->num_hashed, turn->state));  // an answer to the turn before
    snapshot::weights_hasher hasher(turn->state);
    for (const auto& name : turn->names)
      for (auto* each : {&hasher, &expected}) each->add(tensor::full({3}, static_cast<float>(name[0])));
    CHECK(relay.on_hashed(turn->num_hashed + turn->names.size(), hasher.state()));
  }
  CHECK(turns == std::vector<std::pair<std::uint32_t, names>>{{0, {"a"}}, {1, {"b", "c", "d"}}, {0, {"e"}}});
  CHECK(relay.hex() == expected.hex());
}

TEST_CASE("stages without parameters have no turn, and a name that two stages have is refused") {
  hash_relay relay(3);
  relay.add(0, {});
  relay.add(2, {"w"});
  CHECK_FALSE(relay.on_hashed(1, snapshot::weights_hasher().state()));  // the stages are not all known
  CHECK(relay.add(1, {}));
  CHECK(relay.next_turn()->stage == 2);
  hash_relay none(1);
  CHECK(none.add(0, {}));
  CHECK_FALSE(none.next_turn());
  CHECK(none.hex() == snapshot::weights_hasher().hex());
  hash_relay twice(2);
  twice.add(0, {"w"});
  CHECK_THROWS_WITH(twice.add(1, {"w"}), Catch::Matchers::ContainsSubstring("'w' twice"));
}
