#include "troupe/parallel/gradient_reducer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "api/parallel/replicated_model.hpp"
#include "troupe/autograd/functions.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// The identity, whose backward pass ends when the group has begun a reduction.
class waits_for_reduction : public operation {
 public:
  waits_for_reduction(communicator& group, bool& has_come) : group_(group), has_come_(has_come) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    auto is_there = [&] { return group_.recent_calls().find("all_reduce") != std::string::npos; };
    while (!(has_come_ = is_there()) && std::chrono::steady_clock::now() < latest) std::this_thread::yield();
    return {dy};
  }

 private:
  communicator& group_;
  bool& has_come_;
};

}  // namespace

TEST_CASE("gradients are on their way before others of their bucket are there") {
  nn::Linear first(4, 5), last(5, 40000);
  nn::Sequential model(first, last);
  model.materialize(1);
  auto members = make_local_group(1);
  auto& group = *members[0];
  // One bucket; the last layer alone is more than one piece of it.
  DataParallel replicated(model, group, {.bucket_size_mb = 0.1, .first_bucket_mb = 1});
  bool has_come = false;
  auto parameters = model.parameters();
  auto hidden = linear({random_tensor({2, 4}, "x")}, *parameters[0], parameters[1]);
  auto between = record(hidden.value, {hidden}, std::make_unique<waits_for_reduction>(group, has_come));
  auto y = linear(between, *parameters[2], parameters[3]);
  replicated.backward(nn::CrossEntropy()(y, tensor::zeros({2}, dtype::i64), 0.5).loss);
  CHECK(has_come);
}
