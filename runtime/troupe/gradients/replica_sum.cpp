#include "troupe/gradients/replica_sum.hpp"

#include <numeric>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::gradients {
namespace {

bool is_same_memory(const tensor& a, const tensor& b) { return a.bytes().data() == b.bytes().data(); }

std::vector<int> numbers_below(std::size_t count) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

}  // namespace

collective::logical_rank_map spread_replicas(int num_replicas, int num_members) {
  constexpr int max_replicas = 32767;
  if (num_replicas < 1 || num_replicas > max_replicas)
    throw_invalid("DataParallel", "1 to " + std::to_string(max_replicas) + " virtual replicas",
                  std::to_string(num_replicas));
  std::vector<mesh::logical_device> replicas(static_cast<std::size_t>(num_replicas));
  for (int i = 0; i < num_replicas; ++i) replicas[static_cast<std::size_t>(i)].id = {i};
  auto hosts = spread(mesh::placement(std::move(replicas), {}), mesh::view_of_world(num_members));
  std::vector<std::vector<int>> result(static_cast<std::size_t>(num_members));
  for (int i = 0; i < num_replicas; ++i) result[static_cast<std::size_t>(hosts.member_of({i}))].push_back(i);
  return collective::logical_rank_map(std::move(result));
}

summed_here summed_by_member(const collective::logical_rank_map& replicas, const communicator& group) {
  if (group.has_fixed_tree()) return {replicas, group.rank()};
  auto own = numbers_below(replicas.leaves_of(group.rank()).size());
  if (own.empty()) return {collective::logical_rank_map({{}, {0}}), 0};
  return {collective::logical_rank_map(std::vector<std::vector<int>>{std::move(own)}), 0};
}

bool is_plain_all_reduce(const collective::logical_rank_map& replicas, const communicator& group) {
  return !group.has_fixed_tree() ||
         (replicas.num_leaves() == replicas.num_members() && replicas.is_tree_of_members());
}

work all_reduce_nodes(const tensor& nodes, const tensor& sum, const collective::logical_rank_map& replicas,
                      communicator& group, const call_options& options) {
  if (!is_plain_all_reduce(replicas, group))
    return group.all_reduce_leaves(nodes, sum, replicas, reduce_op::sum, options);
  auto own = sum;
  if (!nodes.defined())
    own.fill_zero();
  else if (!is_same_memory(nodes, sum))
    own.copy_from(cast(nodes.reshape(sum.shape()), sum.dtype()));
  return group.all_reduce(sum, reduce_op::sum, options);
}

tensor own_nodes(const std::vector<tensor>& of_replicas, const tensor& sum,
                 const collective::logical_rank_map& replicas, const communicator& group) {
  auto here = summed_by_member(replicas, group);
  auto nodes = here.logical_ranks.nodes_of(here.member);
  if (nodes.empty()) return {};
  if (of_replicas.size() == 1) return of_replicas.front();
  auto count = sum.num_elements();
  auto result = nodes.size() > 1            ? tensor::empty({static_cast<std::int64_t>(nodes.size()), count})
                : sum.dtype() == dtype::f32 ? sum.reshape({1, count})
                                            : of_replicas.front().reshape({1, count});
  auto leaf = of_replicas.begin();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<const std::byte*> inputs;
    for (auto last = leaf + nodes[i].count; leaf != last; ++leaf) inputs.push_back(leaf->bytes().data());
    auto row = result.rows(static_cast<std::int64_t>(i), 1);
    reduce_node(inputs, row.bytes().data(), count, dtype::f32, reduce_op::sum);
  }
  return result;
}

work all_reduce_replicas(const std::vector<tensor>& of_replicas, const tensor& sum,
                         const collective::logical_rank_map& replicas, communicator& group,
                         const call_options& options) {
  return all_reduce_nodes(own_nodes(of_replicas, sum, replicas, group), sum, replicas, group, options);
}

}  // namespace troupe::gradients
