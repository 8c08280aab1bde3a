#include "troupe/execution/replicas/block_pool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::execution;

namespace {

/// Counts the blocks that it gives.
struct counted_source {
  int count = 0;
  program::stage_parameters::memory_source source() {
    return [this](shape extents, dtype type) {
      ++count;
      return tensor::empty(std::move(extents), type);
    };
  }
};

}  // namespace

TEST_CASE("a block serves the next tensor of about its size when its tensor and all views are gone") {
  counted_source from;
  block_pool pool(from.source());
  auto first = pool.take({4, 25}, dtype::f32);
  CHECK(first.shape() == shape{4, 25});
  auto* elements = first.bytes().data();
  auto view = first.rows(1, 2);
  first = {};
  CHECK(pool.take({100}, dtype::f32).bytes().data() != elements);
  CHECK(from.count == 2);
  view = {};
  auto one = pool.take({60}, dtype::f32), other = pool.take({100}, dtype::f32);
  CHECK(from.count == 2);
  CHECK(one.bytes().data() != other.bytes().data());
  one = other = {};
  auto small = pool.take({40}, dtype::f32);  // of 400 bytes most would be wasted
  auto large = pool.take({101}, dtype::f32);
  CHECK(from.count == 4);
}

TEST_CASE("tensors outlive their pool, go on any thread, and what is cleared goes to the system") {
  counted_source from;
  std::vector<tensor> kept;
  {
    block_pool pool(from.source());
    for (int i = 0; i < 8; ++i) kept.push_back(pool.take({64}, dtype::f32));
    std::vector<std::thread> threads;
    for (auto& each : kept)
      threads.emplace_back([&each] {
        each.fill_zero();
        each = {};
      });
    for (auto& each : threads) each.join();
    pool.clear();
    kept[0] = pool.take({64}, dtype::f32);
    CHECK(from.count == 9);
  }
  kept[0].fill_zero();
}
