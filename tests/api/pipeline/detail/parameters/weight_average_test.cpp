#include "troupe/pipeline/detail/parameters/weight_average.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace troupe;

namespace {

parameter weight_of(const std::string& name, shape extents, float value) {
  return {name, tensor::full(extents, value), tensor::zeros(extents)};
}

}  // namespace

TEST_CASE("weights are averaged after every so many optimizer steps") {
  detail::weight_average third(3, {});
  std::vector<bool> due;
  for (std::uint64_t step = 0; step < 7; ++step) due.push_back(third.is_due(step));
  CHECK(due == std::vector<bool>{false, false, true, false, false, true, false});
  CHECK(detail::weight_average(1, {}).is_due(0));
  CHECK(third.num_buckets() == 0);
}

TEST_CASE("large weights travel in views of their own, small ones packed, frozen ones not at all") {
  auto large = weight_of("large", {1000, 600}, 3), small = weight_of("small", {2}, 5),
       frozen = weight_of("frozen", {40000}, 7), none = weight_of("none", {0}, 0);
  frozen.requires_gradient = false;
  detail::weight_average average(2, {&large, &small, &frozen, &none});
  REQUIRE(average.num_buckets() == 3);
  CHECK(average.values_of(0).bytes().data() == large.value().bytes().data());
  CHECK(average.values_of(0).num_elements() + average.values_of(1).num_elements() == 600000);
  CHECK(average.values_of(2).num_elements() == 2);
  auto version = large.version(), version_of_small = small.version();
  average.take_sums(1, {tensor::full({1}, 6), tensor::full({299999}, 12)}, 4);
  average.take_sums(2, {tensor::full({2}, 20)}, 4);
  auto values = large.value().values<float>();
  CHECK(values[299999] == 3);
  CHECK(values[300000] == 1.5F);
  CHECK(values[599999] == 3);
  CHECK(small.value().values<float>()[1] == 5);
  CHECK(large.version() > version);
  CHECK(small.version() > version_of_small);
  CHECK(frozen.value().values<float>()[0] == 7);
}
