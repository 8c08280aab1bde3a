#pragma once
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/random_tensor.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/data_parallel/data_parallel.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"

namespace troupe::testing {

/// Runs `body(group)` for every member of a local group, each on a thread of its own. Exceptions are the
/// body's to catch.
template <class Body>
void on_members(int count, Body body) {
  auto members = collective::make_local_group(count);
  std::vector<std::thread> threads;
  for (auto& each : members) threads.emplace_back([&body, &each] { body(*each); });
  for (auto& each : threads) each.join();
}

inline std::vector<named_tensor> copy_of(const std::vector<named_tensor>& live) {
  std::vector<named_tensor> result;
  for (const auto& each : live) result.push_back({each.name, each.value.clone()});
  return result;
}

inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

/// Images [N, 1, 6, 6] to 5 classes, with what could depend on who computes it: random numbers and running
/// statistics.
inline nn::Sequential small_model() {
  nn::Sequential model(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::Flatten(), nn::Dropout(0.2),
                       nn::Linear(64, 33), nn::Linear(33, 5));
  model.materialize(7);
  return model;
}

/// What replica `replica` trains on in step `step`.
struct replica_batch {
  tensor samples, labels;
};
inline replica_batch batch_of(std::uint64_t step, int replica) {
  auto name = std::to_string(step) + "." + std::to_string(replica);
  auto labels = tensor::zeros({3}, dtype::i64);
  for (int i = 0; i < 3; ++i)
    labels.values<std::int64_t>()[static_cast<std::size_t>(i)] = (static_cast<int>(step) + replica + i) % 5;
  return {random_tensor({3, 1, 6, 6}, name), labels};
}

/// The mean loss of the current replica in this step; backward has run.
inline tensor run_replica(DataParallel& replicated, std::uint64_t step) {
  auto batch = batch_of(step, replicated.current_replica());
  auto found = nn::CrossEntropy()(replicated.forward({batch.samples}), batch.labels, 1.0 / 3);
  replicated.backward(found.loss);
  return found.loss.value.reshape({1});
}

/// The mean losses of this member's replicas in this step, after whose passes an optimizer may step.
inline std::vector<tensor> run_replicas(DataParallel& replicated, std::uint64_t step) {
  std::vector<tensor> losses;
  while (losses.size() < replicated.own_replicas().size()) losses.push_back(run_replica(replicated, step));
  if (losses.empty()) replicated.sync_gradients();
  return losses;
}

/// Whether weights step when all gradients have come, or as they come (DataParallel::make_optimizer).
enum class stepping { together, overlapped };

inline std::unique_ptr<optim::optimizer_state> optimizer_of(DataParallel& replicated, stepping mode,
                                                            const optim::Optimizer& kind) {
  return mode == stepping::overlapped ? replicated.make_optimizer(kind)
                                      : kind(replicated.module().named_parameters());
}

}  // namespace troupe::testing
