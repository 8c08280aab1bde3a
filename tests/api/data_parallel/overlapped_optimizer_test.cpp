#include <catch2/catch_test_macros.hpp>
#include <latch>
#include <mutex>

#include "api/data_parallel/replicated_model.hpp"
#include "bench/data_parallel/throttled_backend.hpp"
#include "support/bits.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/optim/clip.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct stepping_outcome {
  std::vector<named_tensor> weights, optimizer;
};

/// Called after each optimizer step of member 0.
using between_steps = std::function<void(nn::Module&, optim::optimizer_state&)>;

struct training {
  optim::Optimizer optimizer = optim::Adam({.lr = 1e-2});
  data_parallel_options options = {};
  double max_norm = 0;  ///< of clipping, or none
  std::uint64_t num_steps = 5;
  int num_threads = 0;  ///< of each member; 0: as they begin
  between_steps between = nullptr;
};

void train_member(communicator& group, stepping mode, const training& what, stepping_outcome& result) {
  if (what.num_threads > 0) set_num_threads(what.num_threads);
  auto model = small_model();
  DataParallel replicated(model, group, what.options);
  auto optimizer = optimizer_of(replicated, mode, what.optimizer);
  auto parameters = model.parameters();
  for (std::uint64_t step = 0; step < what.num_steps; ++step) {
    run_replicas(replicated, step);
    if (what.max_norm > 0) optim::clip_grad_norm(parameters, what.max_norm);
    optimizer->apply(step);
    if (what.between && group.rank() == 0) what.between(model, *optimizer);
  }
  if (group.rank() == 0) result = {model.state_dict(), copy_of(optimizer->state())};
}

stepping_outcome train_stepping(int num_members, stepping mode, const training& what = {}) {
  stepping_outcome result;
  on_members(num_members, [&](communicator& group) { train_member(group, mode, what, result); });
  return result;
}

void check_same_stepping(const stepping_outcome& a, const stepping_outcome& b) {
  CHECK(same_bits(a.weights, b.weights));
  CHECK(same_bits(a.optimizer, b.optimizer));
}

constexpr data_parallel_options small_buckets{.bucket_size_mb = 0.001, .first_bucket_mb = 0};

data_parallel_options with_replicas(int count) {
  auto result = small_buckets;
  result.num_replicas = count;
  return result;
}

}  // namespace

TEST_CASE(
    "weights stepped as gradients arrive have the bits of weights stepped together, wherever replicas run") {
  for (const optim::Optimizer& kind :
       {optim::Optimizer(optim::Adam({.lr = 1e-2})), optim::Optimizer(optim::LAMB()),
        optim::Optimizer(optim::SGD({.lr = 0.1, .momentum = 0.9}))}) {
    auto expected = train_stepping(4, stepping::together, {.optimizer = kind});
    check_same_stepping(
        train_stepping(4, stepping::overlapped, {.optimizer = kind, .options = small_buckets}), expected);
    check_same_stepping(
        train_stepping(2, stepping::overlapped, {.optimizer = kind, .options = with_replicas(4)}), expected);
    check_same_stepping(
        train_stepping(3, stepping::overlapped, {.optimizer = kind, .options = with_replicas(4)}), expected);
    check_same_stepping(
        train_stepping(5, stepping::overlapped, {.optimizer = kind, .options = with_replicas(4)}), expected);
    check_same_stepping(
        train_stepping(1, stepping::overlapped, {.optimizer = kind, .options = with_replicas(4)}), expected);
  }
}

TEST_CASE("gradients with memory of their own, unused parameters and clipping give the same bits as well") {
  auto not_view = small_buckets, with_unused = small_buckets;
  not_view.gradient_as_bucket_view = false;
  with_unused.find_unused_parameters = true;
  auto expected = train_stepping(3, stepping::together);
  check_same_stepping(train_stepping(3, stepping::overlapped, {.options = not_view}), expected);
  check_same_stepping(train_stepping(3, stepping::overlapped, {.options = with_unused}), expected);
  auto clipped = train_stepping(3, stepping::together, {.max_norm = 0.05});
  CHECK_FALSE(same_bits(clipped.weights, expected.weights));
  check_same_stepping(train_stepping(3, stepping::overlapped, {.options = small_buckets, .max_norm = 0.05}),
                      clipped);
  check_same_stepping(train_stepping(3, stepping::overlapped, {.options = not_view, .max_norm = 0.05}),
                      clipped);
}

TEST_CASE("of several threads that clip gradients one waits for them") {
  training mode{.options = small_buckets, .max_norm = 0.05, .num_threads = 4};
  check_same_stepping(train_stepping(2, stepping::overlapped, mode),
                      train_stepping(2, stepping::together, mode));
}

TEST_CASE("a wait for pending updates between steps returns after the step") {
  // A parameter, a state_dict, the optimizer's state, its synchronize, a copy of the model, an evaluation;
  // each alone.
  std::vector<std::function<tensor(nn::Module&, optim::optimizer_state&)>> readings{
      [](nn::Module& model, auto&) {
        model.parameters()[0]->wait_ready();
        return model.parameters()[0]->value().clone();
      },
      [](nn::Module& model, auto&) { return model.state_dict().back().value.clone(); },
      [](nn::Module& model, optim::optimizer_state& optimizer) {
        optimizer.synchronize();
        return model.parameters().back()->as(dtype::bf16).clone();
      },
      [](nn::Module& model, auto&) { return parameter(*model.parameters()[0]).value().clone(); },
      [](nn::Module&, optim::optimizer_state& optimizer) { return optimizer.state()[3].value.clone(); },
      [](nn::Module& model, auto&) {
        no_grad evaluating;
        model.train(false);
        auto y = model.forward({random_tensor({2, 1, 6, 6}, "seen")}).value;
        model.train(true);
        return y;
      }};
  for (const auto& reading : readings) {
    auto read = [&](stepping mode) {
      std::vector<tensor> found;
      train_stepping(
          2, mode,
          {.options = small_buckets, .between = [&](nn::Module& model, optim::optimizer_state& optimizer) {
             found.push_back(reading(model, optimizer));
           }});
      return found;
    };
    auto expected = read(stepping::together), found = read(stepping::overlapped);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_bits(found[i], expected[i]));
  }
}

TEST_CASE("a parameter with a pending step is not read before the step is done") {
  on_members(2, [&](communicator& group) {
    nn::Sequential model(nn::Linear(4, 3));
    model.materialize(1);
    DataParallel replicated(model, group);
    auto optimizer = replicated.make_optimizer(optim::SGD({.lr = 0.5}));
    auto& weight = *model.parameters()[0];
    auto refusal = [&] { return error_of([&] { weight.value(); }) + error_of([&] { weight.gradient(); }); };
    replicated.backward(
        nn::CrossEntropy()(replicated.forward({tensor::full({2, 4}, 1)}), tensor::zeros({2}, dtype::i64), 0.5)
            .loss);
    auto before_step = refusal();
    optimizer->apply(0);
    auto after_step = refusal();
    optimizer->synchronize();
    auto expected = std::string("[parameter] expected weight[3, 4] without a pending update");
    if (group.rank() == 0) {
      CHECK(before_step.starts_with(expected));
      CHECK(after_step == before_step);
      CHECK(after_step.find("call synchronize() on the optimizer") != std::string::npos);
      CHECK(after_step.rfind(expected) > 0);  // the gradient's, too
      CHECK_NOTHROW(weight.value());
    }
  });
}

TEST_CASE("apply does not wait, and wait_ready waits for the whole step") {
  std::latch stepped(1);
  std::vector<tensor> weights(2);
  on_members(2, [&](communicator& group) {
    nn::Sequential model(nn::Linear(4, 3));
    model.materialize(1);
    DataParallel replicated(model, group);
    auto optimizer = replicated.make_optimizer(optim::SGD({.lr = 0.5}));
    auto x = random_tensor({2, 4}, std::to_string(group.rank()));
    auto loss = nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss;
    if (group.rank() == 1) stepped.wait();  // member 0 comes past its step meanwhile
    replicated.backward(loss);
    optimizer->apply(0);
    if (group.rank() == 0) stepped.count_down();
    model.parameters()[0]->wait_ready();
    weights[static_cast<std::size_t>(group.rank())] = model.parameters()[0]->value().clone();
  });
  CHECK(same_bits(weights[0], weights[1]));
}

TEST_CASE("changes of gradients after apply do not affect the step") {
  std::vector<tensor> weights;
  for (bool erases : {false, true})
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(4, 3));
      model.materialize(1);
      DataParallel replicated(model, group);
      auto optimizer = replicated.make_optimizer(optim::SGD({.lr = 0.5}));
      auto x = random_tensor({2, 4}, std::to_string(group.rank()));
      replicated.backward(
          nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss);
      optimizer->apply(0);
      if (erases)
        for (auto* each : model.parameters()) {
          each->wait_ready();
          each->gradient().fill_zero();
        }
      optimizer->synchronize();
      if (group.rank() == 0) weights.push_back(model.parameters()[0]->value().clone());
    });
  CHECK(same_bits(weights[0], weights[1]));
}

TEST_CASE("passes within no_sync belong to the next step, not to the pending one") {
  auto accumulated = [](stepping mode) {
    tensor result;
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(6, 5), nn::Linear(5, 4));
      model.materialize(3);
      DataParallel replicated(model, group, small_buckets);
      auto optimizer = optimizer_of(replicated, mode, optim::Adam({.lr = 1e-2}));
      for (std::uint64_t step = 0; step < 3; ++step) {
        auto pass = [&](int part) {
          auto x = random_tensor({4, 6}, std::to_string(step) + std::to_string(group.rank() + 2 * part));
          replicated.backward(
              nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({4}, dtype::i64), 0.125).loss);
        };
        {
          auto unsynced = replicated.no_sync();
          pass(0);
        }
        pass(1);
        optimizer->apply(step);
      }
      optimizer->synchronize();
      if (group.rank() == 0) result = model.parameters()[0]->value().clone();
    });
    return result;
  };
  CHECK(same_bits(accumulated(stepping::overlapped), accumulated(stepping::together)));
}

TEST_CASE("training resumes from a snapshot taken while steps were pending") {
  auto uninterrupted = train_stepping(2, stepping::together, {.num_steps = 6});
  std::vector<named_tensor> weights, state, replicas;
  stepping_outcome result;
  on_members(2, [&](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group, small_buckets);
    auto optimizer = replicated.make_optimizer(optim::Adam({.lr = 1e-2}));
    for (std::uint64_t step = 0; step < 3; ++step) {
      run_replica(replicated, step);
      optimizer->apply(step);
    }
    if (group.rank() == 0) weights = copy_of(model.state_dict());
    if (group.rank() == 0) state = copy_of(optimizer->state());
  });
  on_members(2, [&](communicator& group) {
    auto model = small_model();
    model.load_state_dict(weights);
    DataParallel replicated(model, group, small_buckets);
    replicated.set_step(3);
    auto optimizer = replicated.make_optimizer(optim::Adam({.lr = 1e-2}));
    auto live = optimizer->state();
    for (std::size_t i = 0; i < live.size(); ++i) live[i].value.copy_from(state[i].value);
    for (std::uint64_t step = 3; step < 6; ++step) {
      run_replica(replicated, step);
      optimizer->apply(step);
    }
    if (group.rank() == 0) result = {model.state_dict(), copy_of(optimizer->state())};
  });
  check_same_stepping(result, uninterrupted);
}

TEST_CASE("pending steps are completed before their optimizer or DataParallel is destroyed") {
  for (bool optimizer_first : {true, false}) {
    std::vector<tensor> weights(2);
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(4, 3));
      model.materialize(1);
      auto replicated = std::make_unique<DataParallel>(model, group);
      auto optimizer = replicated->make_optimizer(optim::SGD({.lr = 0.5}));
      auto kept = model.parameters()[0]->value();
      auto before = kept.clone();
      auto x = random_tensor({2, 4}, std::to_string(group.rank()));
      replicated->backward(
          nn::CrossEntropy()(replicated->forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss);
      optimizer->apply(0);
      if (optimizer_first) optimizer.reset();
      replicated.reset();
      if (same_bits(kept, before)) kept = {};
      weights[static_cast<std::size_t>(group.rank())] = kept;
    });
    CHECK(weights[0].defined());
    CHECK(same_bits(weights[0], weights[1]));
  }
}

TEST_CASE("a communication order derived from the times of a slow link changes no bit") {
  training long_enough{.options = small_buckets, .num_steps = 10};
  auto expected = train_stepping(2, stepping::together, long_enough);
  stepping_outcome result;
  auto members = collective::make_local_group(2, over_link(2, 20e6));
  std::vector<std::thread> threads;
  for (auto& each : members)
    threads.emplace_back([&] { train_member(*each, stepping::overlapped, long_enough, result); });
  for (auto& each : threads) each.join();
  check_same_stepping(result, expected);
}
