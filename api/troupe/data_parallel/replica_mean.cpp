#include "troupe/data_parallel/replica_mean.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/gradients/replica_sum.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {
namespace {

constexpr auto function_name = "mean_over_replicas";
constexpr int max_axes = 8;

/// What a member tells the others: how many tensors it has, and of which shape.
struct metric_shape {
  int count = 0;
  shape extents;
};
constexpr std::int64_t num_told = 2 + max_axes;

std::vector<std::int64_t> told(const metric_shape& own) {
  std::vector<std::int64_t> result{own.count, own.extents.rank()};
  result.insert(result.end(), own.extents.extents().begin(), own.extents.extents().end());
  result.resize(static_cast<std::size_t>(num_told));
  return result;
}

std::vector<metric_shape> of_all(const metric_shape& own, communicator& group) {
  auto all = tensor::zeros({group.size() * num_told}, dtype::i64, group.device());
  group
      .all_gather(tensor::from(told(own), {num_told}).to(group.device()), all,
                  {.progress = progress_by::waiter})
      .wait();
  all = all.to(device{});
  const auto* next = std::as_const(all).values<std::int64_t>().data();
  std::vector<metric_shape> result;
  for (int member = 0; member < group.size(); ++member, next += num_told)
    result.push_back({static_cast<int>(next[0]), shape(std::vector(next + 2, next + 2 + next[1]))});
  return result;
}

/// The shape of all tensors.
shape agreed(const std::vector<metric_shape>& told, const communicator& group) {
  const metric_shape* first = nullptr;
  std::size_t first_member = 0;
  const auto& ranks = group.group().ranks;
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (told[i].count == 0) continue;
    if (!first) first = &told[first_member = i];
    if (told[i].extents != first->extents)
      throw_invalid(function_name, "one shape on all ranks",
                    to_string(first->extents) + " on rank " + to_string(ranks[first_member]) + ", " +
                        to_string(told[i].extents) + " on rank " + to_string(ranks[i]));
  }
  if (!first) throw_invalid(function_name, "a tensor from at least one member", "none from any");
  return first->extents;
}

collective::logical_rank_map in_blocks(const std::vector<metric_shape>& told) {
  std::vector<std::vector<int>> replicas;
  int next = 0;
  for (const auto& each : told) {
    auto& of_member = replicas.emplace_back(static_cast<std::size_t>(each.count));
    std::iota(of_member.begin(), of_member.end(), next);
    next += each.count;
  }
  return collective::logical_rank_map(std::move(replicas));
}

void require_one_shape(const std::vector<tensor>& of_replicas) {
  for (const auto& each : of_replicas)
    if (!each.defined() || each.dtype() != dtype::f32 || each.shape() != of_replicas.front().shape() ||
        each.shape().rank() > max_axes)
      throw_invalid(function_name,
                    "f32 tensors of one shape of at most " + std::to_string(max_axes) + " axes, " +
                        describe(of_replicas.front()),
                    describe(each));
}

}  // namespace

tensor mean_over_replicas(const std::vector<tensor>& of_replicas, communicator& group) {
  require_one_shape(of_replicas);
  metric_shape own{static_cast<int>(of_replicas.size()),
                   of_replicas.empty() ? shape() : of_replicas.front().shape()};
  auto told = of_all(own, group);
  auto extents = agreed(told, group);
  auto replicas = in_blocks(told);

  std::vector<tensor> here;
  for (const auto& each : of_replicas) here.push_back(each.to(device{}));
  auto sum = tensor::zeros(extents);
  auto nodes = gradients::own_nodes(here, sum, replicas, group);
  if (nodes.defined()) nodes = nodes.to(group.device());
  sum = sum.to(group.device());
  gradients::all_reduce_nodes(nodes, sum, replicas, group, {.progress = progress_by::waiter}).wait();
  return divide(sum.to(device{}), tensor::full({}, static_cast<float>(replicas.num_leaves())));
}

}  // namespace troupe
