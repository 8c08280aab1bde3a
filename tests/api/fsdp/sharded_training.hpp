#pragma once
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/fsdp/fully_sharded_data_parallel.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/optim/clip.hpp"

namespace troupe::testing {

constexpr double small_units = 0.02;  // of a MiB: several in these models

/// A model, and the mean loss of one replica's batch of a step by what `forward` computes.
struct trained_example {
  std::function<std::shared_ptr<nn::Module>()> make;  ///< only described
  std::function<variable(std::uint64_t step, int replica,
                         const std::function<variable(const variable&)>& forward)>
      loss;
};

inline std::shared_ptr<nn::Module> materialized(const trained_example& example) {
  auto model = example.make();
  model->materialize(7);
  return model;
}

/// Images, with random numbers and running statistics.
inline trained_example images() {
  return {[] {
            return std::make_shared<nn::Sequential>(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::Flatten(),
                                                    nn::Dropout(0.2), nn::Linear(64, 333),
                                                    nn::Linear(333, 77), nn::Linear(77, 5));
          },
          [](std::uint64_t step, int replica, const std::function<variable(const variable&)>& forward) {
            auto batch = batch_of(step, replica);
            return nn::CrossEntropy()(forward({batch.samples}), batch.labels, 1.0 / 3).loss;
          }};
}

/// A GPT whose head is tied to its embedding, which a step needs at both ends.
inline trained_example tokens(bool checkpoints = false) {
  return {[=] {
            return std::make_shared<nn::GPT>(nn::gpt_options{.vocabulary = 61,
                                                             .context = 8,
                                                             .features = 96,
                                                             .num_layers = 3,
                                                             .num_heads = 2,
                                                             .dropout = 0.1,
                                                             .checkpoint_blocks = checkpoints});
          },
          [](std::uint64_t step, int replica, const std::function<variable(const variable&)>& forward) {
            auto given = tensor::zeros({2, 8}, dtype::i64), wanted = tensor::zeros({16}, dtype::i64);
            for (std::size_t i = 0; i < 16; ++i) {
              given.values<std::int64_t>()[i] =
                  static_cast<std::int64_t>(i * 7 + step * 3 + static_cast<std::size_t>(replica) * 5) % 61;
              wanted.values<std::int64_t>()[i] = (given.values<std::int64_t>()[i] * 3 + 1) % 61;
            }
            auto logits = forward({given});
            return nn::CrossEntropy()(reshape(logits, {16, 61}), wanted, 1.0 / 16).loss;
          }};
}

/// The losses of all replicas' passes, and the weights at the end.
struct training_result {
  std::vector<named_tensor> weights;
  std::vector<float> losses;
};

inline bool same_training(const training_result& a, const training_result& b) {
  return a.losses == b.losses && same_bits(a.weights, b.weights);
}

/// What happens in a step between its passes and the optimizer's, and how many passes a replica makes.
struct training_recipe {
  int num_replicas = 1;
  optim::Optimizer optimizer = optim::Adam({.lr = 1e-2});
  double clip = 0;
  int num_passes = 1;
  int num_steps = 3;
};

/// The bits to expect: one process with a DataParallel of all replicas.
inline training_result train_whole(const trained_example& example, const training_recipe& recipe) {
  training_result result;
  on_members(1, [&](communicator& group) {
    auto model = materialized(example);
    DataParallel replicated(*model, group, {.num_replicas = recipe.num_replicas});
    auto optimizer = recipe.optimizer(model->named_parameters());
    auto forward = [&](const variable& x) { return replicated.forward(x); };
    for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(recipe.num_steps); ++step) {
      for (int replica = 0; replica < recipe.num_replicas; ++replica)
        for (int pass = 1; pass <= recipe.num_passes; ++pass) {
          auto loss = example.loss(step * 10 + static_cast<std::uint64_t>(pass), replica, forward);
          result.losses.push_back(loss.value.values<float>()[0]);
          if (pass == recipe.num_passes) {
            replicated.backward(loss);
          } else {
            auto accumulates = replicated.no_sync();
            replicated.backward(loss);
          }
        }
      if (recipe.clip > 0)
        result.losses.push_back(static_cast<float>(optim::clip_grad_norm(model->parameters(), recipe.clip)));
      optimizer->apply(step);
    }
    result.weights = copy_of(model->state_dict());
  });
  return result;
}

/// The passes of one member's replicas in one step; their losses are appended.
inline void run_sharded_passes(FullyShardedDataParallel& sharded, const trained_example& example,
                               const training_recipe& recipe, std::uint64_t step,
                               std::vector<float>& losses) {
  auto forward = [&](const variable& x) { return sharded.forward(x); };
  for (int replica : sharded.own_replicas())
    for (int pass = 1; pass <= recipe.num_passes; ++pass) {
      auto loss = example.loss(step * 10 + static_cast<std::uint64_t>(pass), replica, forward);
      losses.push_back(loss.value.values<float>()[0]);
      if (pass == recipe.num_passes) {
        sharded.backward(loss);
      } else {
        auto accumulates = sharded.no_sync();
        sharded.backward(loss);
      }
    }
}

/// Runs `body(shards, copies)` for each member of a grid, on a thread of its own: `copies` null for one
/// division.
inline void on_grid(int num_members, int num_copies,
                    const std::function<void(const std::shared_ptr<communicator>& shards,
                                             const std::shared_ptr<communicator>& copies)>& body) {
  auto num_shards = num_members / num_copies;
  std::vector<std::vector<std::shared_ptr<communicator>>> divisions, same_parts;
  auto shared = [](std::vector<std::unique_ptr<communicator>> made) {
    return std::vector<std::shared_ptr<communicator>>(std::make_move_iterator(made.begin()),
                                                      std::make_move_iterator(made.end()));
  };
  for (int i = 0; i < num_copies; ++i) divisions.push_back(shared(collective::make_local_group(num_shards)));
  for (int i = 0; i < num_shards && num_copies > 1; ++i)
    same_parts.push_back(shared(collective::make_local_group(num_copies)));
  std::vector<std::thread> threads;
  for (std::size_t division = 0; division < divisions.size(); ++division)
    for (std::size_t shard = 0; shard < divisions[division].size(); ++shard)
      threads.emplace_back([&, division, shard] {
        body(divisions[division][shard], num_copies > 1 ? same_parts[shard][division] : nullptr);
      });
  for (auto& each : threads) each.join();
}

/// The same over members, with shards; divided by so many groups of them alike.
inline training_result train_sharded(const trained_example& example, const training_recipe& recipe,
                                     int num_members, fully_sharded_options options, int num_copies = 1) {
  options.num_replicas = recipe.num_replicas;
  auto num_steps = static_cast<std::size_t>(recipe.num_steps);
  std::vector<std::vector<std::vector<float>>> losses(  // by step, by member
      num_steps, std::vector<std::vector<float>>(static_cast<std::size_t>(num_members)));
  std::vector<float> norms(num_steps);
  training_result result;
  std::vector<named_tensor> of_last;
  on_grid(num_members, num_copies, [&](const auto& shards, const auto& copies) {
    auto member = shards->rank() + (copies ? copies->rank() * shards->size() : 0);
    auto model = options.seed ? example.make() : materialized(example);
    FullyShardedDataParallel sharded(*model, shards, copies, options);
    auto optimizer = sharded.make_optimizer(recipe.optimizer);
    for (std::size_t step = 0; step < num_steps; ++step) {
      run_sharded_passes(sharded, example, recipe, step, losses[step][static_cast<std::size_t>(member)]);
      auto norm = recipe.clip > 0 ? static_cast<float>(sharded.clip_grad_norm(recipe.clip)) : 0.0F;
      if (member == 0) norms[step] = norm;
      optimizer->apply(step);
    }
    auto weights = sharded.state_dict();
    if (member + 1 == num_members) of_last = weights;
    if (member == 0) result.weights = std::move(weights);
  });
  // Each replica has running statistics of its own.
  for (std::size_t i = 0; i < of_last.size(); ++i)
    if (of_last[i].name.find("running") == std::string::npos &&
        !same_bits(of_last[i].value, result.weights[i].value))
      throw std::runtime_error("the last member has other weights than the first");
  for (std::size_t step = 0; step < num_steps; ++step) {
    for (const auto& each : losses[step]) result.losses.insert(result.losses.end(), each.begin(), each.end());
    if (recipe.clip > 0) result.losses.push_back(norms[step]);
  }
  return result;
}

}  // namespace troupe::testing
