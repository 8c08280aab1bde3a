#include "troupe/data_parallel/hooks/half_precision_gradients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "api/data_parallel/hooks/hooked_bucket.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

float rounded(float value, dtype type) {
  return cast(cast(tensor::full({}, value), type), dtype::f32).values<float>()[0];
}

}  // namespace

TEST_CASE("leaves are rounded, summed in f32 and rounded once more") {
  for (auto type : {dtype::bf16, dtype::f16})
    for (int leaves : {1, 2}) {
      std::vector<std::vector<float>> found(2);
      on_members(2, [&](communicator& group) {
        auto bucket = bucket_of(group, {{"w", {20}}}, group.size() * leaves);
        for (std::size_t i = 0; i < bucket.leaves.size(); ++i) {
          auto name = std::to_string(bucket.own_replicas[i]);
          bucket.leaves[i].rows(0, 20).copy_from(random_tensor({20}, name));
        }
        half_precision_gradients hook(type);
        hook.prepare({bucket});
        reduce(hook, bucket, group);
        found[static_cast<std::size_t>(group.rank())] = numbers(bucket.sum);
      });
      CHECK(found[0] == found[1]);
      for (std::size_t i = 0; i < 20; ++i) {
        std::vector<float> halves{0, 0};
        for (int replica = 0; replica < 2 * leaves; ++replica) {
          auto x = random_tensor({20}, std::to_string(replica)).values<float>()[i];
          halves[static_cast<std::size_t>(replica / leaves)] += rounded(x, type);
        }
        CHECK(found[0][i] == rounded(halves[0] + halves[1], type));
      }
    }
}

TEST_CASE("sums of bf16 are not rounded before the root") {
  // 256 + 1 + 1 = 258: in bf16, 257 would have become 256 twice.
  on_members(4, [](communicator& group) {
    auto bucket = bucket_of(group, {{"w", {1}}});
    set(bucket.sum, {group.rank() == 0 ? 256.0F : group.rank() == 3 ? 0.0F : 1.0F});
    half_precision_gradients hook;
    hook.prepare({bucket});
    reduce(hook, bucket, group);
    static std::mutex checking;
    std::lock_guard lock(checking);
    CHECK(bucket.sum.values<float>()[0] == 258);
  });
}

TEST_CASE("gradients are rounded to bf16 or f16 only") {
  CHECK_THROWS_AS(half_precision_gradients(dtype::f32), std::invalid_argument);
  CHECK_THROWS_AS(half_precision_gradients(dtype::i32), std::invalid_argument);
}
