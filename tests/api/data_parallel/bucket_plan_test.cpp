#include "troupe/data_parallel/bucket_plan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <deque>

#include "troupe/autograd/gradient_rows.hpp"

using namespace troupe;

namespace {

struct planned {
  std::deque<parameter> parameters;
  std::vector<planned_bucket> buckets;
};

planned plan(const std::vector<shape>& sizes, const bucket_limits& limits) {
  planned result;
  std::vector<named_parameter> named;
  for (const auto& size : sizes) {
    result.parameters.emplace_back("p", size, nullptr);
    named.push_back({std::to_string(named.size()), &result.parameters.back()});
  }
  result.buckets = plan_buckets(named, limits);
  return result;
}

}  // namespace

TEST_CASE("buckets take parameters from the last to the first, the first bucket being smaller") {
  auto [parameters, buckets] =
      plan({{20000}, {1000}, {1000}, {16}, {16}}, {.first_bytes = 100, .bytes = 5000});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].parameters == std::vector{4, 3});
  CHECK(buckets[1].parameters == std::vector{2, 1});
  CHECK(buckets[2].parameters == std::vector{0});
}

TEST_CASE("parts of a bucket begin at cache lines and lie one after the other") {
  auto [parameters, buckets] = plan({{5}, {17}, {0}, {16}}, {});
  REQUIRE(buckets.size() == 1);
  const auto& parts = buckets[0].parts;
  REQUIRE(parts.size() == 4);
  CHECK(parts[0].first == 0);
  CHECK(parts[0].parameter == "3");
  CHECK(parts[1].first == 16);
  CHECK(parts[2].first == 16);
  CHECK(parts[3].first == 48);
  CHECK(buckets[0].num_elements == 64);
}

TEST_CASE("with a limit of 0 every parameter has its own bucket, and no parameters give no bucket") {
  CHECK(plan({{3}, {4}, {5}}, {.first_bytes = 0, .bytes = 0}).buckets.size() == 3);
  CHECK(plan({}, {}).buckets.empty());
}

TEST_CASE("buckets of a small model hold an eighth of its gradients, but no less than the first one may") {
  std::vector<shape> sizes(32, {1024});
  CHECK(plan(sizes, {.first_bytes = 4096}).buckets.size() == 9);
  CHECK(plan(sizes, {.first_bytes = 65536}).buckets.size() == 2);
}

TEST_CASE("a large bucket is cut into equal chunks that hold all of it, a small one is one chunk") {
  auto [parameters, buckets] = plan({{16}, {400000}, {5}}, {.first_bytes = 0, .bytes = 1 << 20});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].chunks.size() == 1);
  CHECK(buckets[2].chunks.size() == 1);
  const auto& chunks = buckets[1].chunks;
  REQUIRE(chunks.size() == 8);  // an eighth of all gradients is the limit
  std::int64_t end = 0;
  for (const auto& each : chunks) {
    CHECK(each.first == end);
    CHECK(each.first % 16 == 0);
    CHECK(each.count == 50000);
    end += each.count;
  }
  CHECK(end == buckets[1].num_elements);
}

TEST_CASE("a large bucket is cut where rows of a gradient come together") {
  const shape weight{2048, 2048}, head{10, 2048};
  auto block = gradient_rows_at_a_time(weight) * 2048;
  REQUIRE(block < weight.num_elements());
  auto limit = 4 * (block + block / 2);
  auto [parameters, buckets] = plan({weight, {2048}, head, {10}}, {.first_bytes = limit, .bytes = limit});
  REQUIRE(buckets.size() == 1);
  const auto& chunks = buckets[0].chunks;
  const auto& rows = buckets[0].parts[3];
  REQUIRE(rows.extents == weight);
  REQUIRE(chunks.size() == static_cast<std::size_t>(weight.num_elements() / block));
  CHECK(chunks[0].first == 0);  // with what is small before the first rows
  for (std::size_t i = 0; i < chunks.size(); ++i)
    CHECK(chunks[i].first + chunks[i].count == rows.first + static_cast<std::int64_t>(i + 1) * block);
}
