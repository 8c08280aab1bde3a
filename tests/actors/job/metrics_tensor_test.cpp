#include "troupe/job/metrics_tensor.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::actors::job;

TEST_CASE("metrics are taken out of a packed state bit for bit, and the rest of the state is unchanged") {
  wire::packed_state_pool pool;
  program::step_metrics metrics{0.1 + 0.2, 64, 17};
  auto state =
      wire::unpack_state(pack_state({{"0.weight", tensor::full({2}, 3)}, metrics_tensor(metrics)}, pool));
  CHECK(extract_metrics(state, 2) == std::map<std::int32_t, program::step_metrics>{{2, metrics}});
  REQUIRE(state.size() == 1);
  CHECK(state[0].name == "0.weight");
}

TEST_CASE("the metrics of all replicas are taken out, whichever replica's state it is") {
  wire::packed_state_pool pool;
  program::step_metrics first{0.1 + 0.2, 64, 17}, second{-1e300, 1LL << 40, 0};
  auto state = wire::unpack_state(pack_state({replica_metrics_tensor({first, second})}, pool));
  CHECK(extract_metrics(state, 1) == std::map<std::int32_t, program::step_metrics>{{0, first}, {1, second}});
  CHECK(state.empty());
  CHECK(replica_metrics_contents(2).name == replica_metrics_tensor({first}).name);
  CHECK(replica_metrics_contents(2).whole == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("a state without a metrics tensor is left as it is") {
  std::vector<named_tensor> none, other{{"0.weight", tensor::full({2}, 3)}};
  CHECK(extract_metrics(none, 0).empty());
  CHECK(extract_metrics(other, 0).empty());
  CHECK(other.size() == 1);
}

TEST_CASE("a metrics tensor of another size is ignored, and one of another dtype is refused") {
  auto note = metrics_tensor({}).name;
  std::vector<named_tensor> longer{{note, tensor::zeros({4}, dtype::i64)}},
      floats{{note, tensor::zeros({3})}};
  CHECK(extract_metrics(longer, 0).empty());
  CHECK_THROWS_AS(extract_metrics(floats, 0), std::invalid_argument);
}
