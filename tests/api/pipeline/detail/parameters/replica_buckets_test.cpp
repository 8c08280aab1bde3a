#include <catch2/catch_test_macros.hpp>

#include "troupe/pipeline/detail/parameters/replica_buckets.hpp"

using namespace troupe;

namespace {

/// With the gradient `first`, `first` + 1, ...
parameter with_gradient(const std::string& name, shape extents, float first) {
  parameter made{name, tensor::zeros(extents), tensor::zeros(extents)};
  for (float& each : made.gradient().values<float>()) each = first++;
  made.has_gradient = true;
  return made;
}

std::vector<float> values_of(const tensor& of) {
  auto values = of.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a large gradient is cut into views of its own memory, small ones are packed with what there is") {
  auto large = with_gradient("large", {1000, 1200}, 0), small = with_gradient("small", {3}, 7),
       frozen = with_gradient("frozen", {40000}, 0), unused = with_gradient("unused", {2}, 5);
  frozen.requires_gradient = false;
  unused.has_gradient = false;
  detail::replica_buckets buckets({&frozen, &large, &small, &unused});
  REQUIRE(buckets.count() == 4);  // 1,200,000 elements in three
  CHECK(buckets.buckets_of(large) == std::pair(1, 3));
  CHECK(buckets.buckets_of(small).second == 0);
  CHECK(buckets.buckets_of(frozen).second == 0);
  std::int64_t next = 0;
  for (int bucket = 1; bucket < 4; ++bucket) {
    CHECK(buckets.part_of(bucket).index == 1);
    CHECK(buckets.part_of(bucket).first == next);
    auto elements = buckets.elements_of(bucket);
    CHECK(elements.bytes().data() ==
          large.gradient().bytes().data() + static_cast<std::size_t>(next) * sizeof(float));
    next += elements.num_elements();
  }
  CHECK(next == 1200000);
  CHECK(values_of(buckets.elements_of(0)) == std::vector<float>{7, 8, 9, 0, 0, 1, 1, 0});
}

TEST_CASE("sums come back in parts, and tell which parameters any replica had a gradient of") {
  auto large = with_gradient("large", {20000}, 0), small = with_gradient("small", {3}, 7);
  large.has_gradient = small.has_gradient = false;
  detail::replica_buckets buckets({&large, &small});
  REQUIRE(buckets.count() == 2);
  CHECK(values_of(buckets.elements_of(1)) == std::vector<float>(20000, 0));
  buckets.set_elements(1, {tensor::full({1}, 2), tensor::full({19999}, 3)}, {&large, &small});
  CHECK_FALSE(large.has_gradient);
  buckets.set_elements(0, {tensor::full({3}, 4), tensor::from(std::vector<float>{2, 0}, {2})},
                       {&large, &small});
  CHECK(large.has_gradient);
  CHECK_FALSE(small.has_gradient);
  auto values = values_of(large.gradient());
  CHECK(values.front() == 2);
  CHECK(values.back() == 3);
}

TEST_CASE("buckets are numbered in the order in which the next forward needs them") {
  auto first = with_gradient("a", {20000}, 0), second = with_gradient("b", {20000}, 0),
       small = with_gradient("c", {2}, 0);
  detail::replica_buckets buckets({&first, &second, &small}, {2, 1, 0});
  CHECK(buckets.is_packed(0));
  CHECK(buckets.buckets_of(second) == std::pair(1, 1));
  CHECK(buckets.buckets_of(first) == std::pair(2, 1));
}

TEST_CASE("where nothing is trained one bucket travels all the same") {
  auto frozen = with_gradient("frozen", {4}, 0);
  frozen.requires_gradient = false;
  detail::replica_buckets buckets({&frozen});
  CHECK(buckets.count() == 1);
  CHECK(buckets.elements_of(0).num_elements() == 1);
  buckets.set_elements(0, {tensor::zeros({1})}, {&frozen});
}
