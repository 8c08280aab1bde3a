#include "troupe/supervisor/state_restore.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::supervisor;

namespace {

tensor state_of(float value) { return tensor::full({1}, value); }
float value_of(const tensor& state) { return state.values<float>()[0]; }

}  // namespace

TEST_CASE("a state that arrived is found by part and generation") {
  arrived_states arrived;
  arrived.add(2, {{1}}, state_of(7));
  CHECK(value_of(arrived.find(2, {{1}})) == 7);
  CHECK_FALSE(arrived.find(2, {{0}}).defined());
  CHECK_FALSE(arrived.find(3, {{1}}).defined());
  arrived.clear();
  CHECK_FALSE(arrived.find(2, {{1}}).defined());
}

TEST_CASE("states of a newer generation take the place of all older ones") {
  arrived_states arrived;
  arrived.add(2, {{0}}, state_of(1));
  arrived.add(2, {{1}}, state_of(2));
  arrived.add(3, {{1}}, state_of(3));
  CHECK_FALSE(arrived.find(2, {{0}}).defined());
  CHECK_FALSE(arrived.find(3, {{0}}).defined());
  CHECK(value_of(arrived.find(3, {{1}})) == 3);
}

TEST_CASE("an older state that arrives late does not replace a newer one") {
  arrived_states arrived;
  arrived.add(3, {{1}}, state_of(3));
  arrived.add(2, {{1}}, state_of(2));
  CHECK(value_of(arrived.find(3, {{1}})) == 3);
}
