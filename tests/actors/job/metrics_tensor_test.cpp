#include "troupe/job/metrics_tensor.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/program/packed_state.hpp"

using namespace troupe;

TEST_CASE("metrics are taken out of a packed state bit for bit, and the rest of the state is unchanged") {
  packed_state_pool pool;
  step_metrics metrics{0.1 + 0.2, 64, 17};
  auto state = unpack_state(pack_state({{"0.weight", tensor::full({2}, 3)}, metrics_tensor(metrics)}, pool));
  CHECK(extract_metrics(state) == metrics);
  REQUIRE(state.size() == 1);
  CHECK(state[0].name == "0.weight");
}

TEST_CASE("a state without a metrics tensor is left as it is") {
  std::vector<named_tensor> none, other{{"0.weight", tensor::full({2}, 3)}};
  CHECK_FALSE(extract_metrics(none));
  CHECK_FALSE(extract_metrics(other));
  CHECK(other.size() == 1);
}

TEST_CASE("a metrics tensor of another size is ignored, and one of another dtype is refused") {
  auto note = metrics_tensor({}).name;
  std::vector<named_tensor> longer{{note, tensor::zeros({4}, dtype::i64)}},
      floats{{note, tensor::zeros({3})}};
  CHECK_FALSE(extract_metrics(longer));
  CHECK_THROWS_AS(extract_metrics(floats), std::invalid_argument);
}
