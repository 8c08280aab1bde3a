// What would let the replicas' weights drift apart unseen is refused.
#include <catch2/catch_test_macros.hpp>
#include <latch>
#include <stdexcept>

#include "api/data_parallel/replicated_model.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

variable loss_of(DataParallel& replicated, std::uint64_t step) {
  auto batch = batch_of(step, replicated.current_replica());
  return nn::CrossEntropy()(replicated.forward({batch.samples}), batch.labels, 1.0 / 3).loss;
}

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

/// What each of two members is refused.
std::vector<std::string> refusals(
    const std::function<void(nn::Module&, DataParallel&, optim::optimizer_state&)>& body,
    bool begins_frozen = false) {
  std::vector<std::string> told(2);
  std::latch over(2);
  on_members(2, [&](communicator& group) {
    auto model = small_model();
    model.parameters()[0]->requires_gradient = !begins_frozen;
    DataParallel replicated(model, group);
    auto optimizer = replicated.make_optimizer(optim::SGD({.lr = 0.1}));
    replicated.backward(loss_of(replicated, 0));
    optimizer->apply(0);
    told[static_cast<std::size_t>(group.rank())] = refusal_of([&] { body(model, replicated, *optimizer); });
    over.arrive_and_wait();
  });
  return told;
}

void check_all(const std::vector<std::string>& told, const std::string& part) {
  for (const auto& each : told) {
    INFO(each);
    CHECK(each.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("an optimizer of DataParallel refuses gradients that its backward pass did not average") {
  check_all(refusals([](nn::Module&, DataParallel& replicated, optim::optimizer_state& optimizer) {
              loss_of(replicated, 1).backward();
              optimizer.apply(1);
            }),
            "use DataParallel::backward instead of the loss's");
}

TEST_CASE("an optimizer of DataParallel refuses gradients that were only accumulated within no_sync") {
  check_all(refusals([](nn::Module&, DataParallel& replicated, optim::optimizer_state& optimizer) {
              replicated.backward(loss_of(replicated, 1));  // not applied
              auto gathering = replicated.no_sync();
              replicated.backward(loss_of(replicated, 2));
              optimizer.apply(1);
            }),
            "end no_sync() before the last backward pass of a step");
}

TEST_CASE("an optimizer of DataParallel steps over averaged gradients, clipped ones and ones used twice") {
  CHECK(refusals([](nn::Module& model, DataParallel& replicated, optim::optimizer_state& optimizer) {
          {
            auto gathering = replicated.no_sync();
            replicated.backward(loss_of(replicated, 1));
          }
          replicated.backward(loss_of(replicated, 2));
          for (auto* each : model.parameters()) each->wait_ready();
          optimizer.apply(1);
          optimizer.apply(2);
        }) == std::vector<std::string>{"none", "none"});
}

TEST_CASE("a parameter frozen when its model was wrapped may not be trained later") {
  auto told = refusals(
      [](nn::Module& model, DataParallel& replicated, optim::optimizer_state&) {
        model.parameters()[0]->requires_gradient = true;
        replicated.backward(loss_of(replicated, 1));
      },
      true);
  check_all(told, "0.weight");  // the other member may detect it first
  CHECK((told[0] + told[1]).find("expected 0.weight to stay frozen, as it was when its model was wrapped") !=
        std::string::npos);
}
