#include "troupe/data_parallel/hooks/compressed_hook.hpp"

#include <catch2/catch_test_macros.hpp>

#include "api/data_parallel/hooks/hooked_bucket.hpp"
#include "troupe/ops/elementwise.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Sends each element twice, in two rounds, of which it needs the first one's sums for the second.
class doubling final : public gradients::gradient_compressor {
 public:
  explicit doubling(int& num_open) : num_open_(num_open) {}
  int num_rounds() const override { return 2; }
  tensor message_of(const gradients::gradient_part& part, const tensor& gradient) override {
    if (part.round == 0) ++num_open_;
    return gradient.clone();
  }
  std::vector<tensor> sums_from(const gradients::gradient_part& part,
                                const std::vector<tensor>& received) override {
    if (part.round == 0) {
      first_ = received.front().clone();
      return {};
    }
    return {add(first_, received.front())};
  }
  void end_step() override {
    if (first_.defined()) --num_open_;
    first_ = {};
  }

 private:
  int& num_open_;
  tensor first_;
};

/// Steps that have begun and not ended, over all compressors.
class doubling_hook final : public compressed_hook {
 public:
  explicit doubling_hook(int& num_open) : compressed_hook("doubling_hook", "", 0), num_open_(num_open) {}

 private:
  std::vector<segment> segments_of(const gradient_bucket& bucket,
                                   std::size_t num_compressors) const override {
    std::vector<segment> result;
    for (const auto& part : bucket.parts) {
      auto& added = result.emplace_back(part.first, part.extents.num_elements(), part.extents);
      for (std::size_t i = 0; i < num_compressors; ++i)
        added.compressors.push_back(std::make_unique<doubling>(num_open_));
    }
    return result;
  }

  int& num_open_;
};

}  // namespace

TEST_CASE("a hook of one's own has its rounds and the end of each step, also of one that is interrupted") {
  auto members = collective::make_local_group(1);
  auto bucket = bucket_of(*members[0], {{"v", {3}}, {"w", {2, 2}}}, 2);
  int num_open = 0;
  doubling_hook hook(num_open);
  hook.prepare({bucket});
  for (auto& leaf : bucket.leaves) leaf.copy_from(tensor::full(leaf.shape(), 3));
  reduce(hook, bucket, *members[0]);
  CHECK(numbers(part_of(bucket.sum, bucket.parts[1])) == std::vector<float>{12, 12, 12, 12});
  CHECK(num_open == 0);
  {
    auto interrupted = hook.begin(bucket, *members[0]);
    CHECK(interrupted->proceed());
    CHECK(num_open == 4);  // two parameters of two replicas
  }
  CHECK(num_open == 0);
}
