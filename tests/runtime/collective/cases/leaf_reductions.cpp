#include <cstring>
#include <random>
#include <stdexcept>

#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"
#include "support/random_tensor.hpp"
#include "support/rounded.hpp"
#include "troupe/collective/calls/leaf_accumulator.hpp"

namespace troupe::testing {
namespace {

tensor gradient_of(int leaf, std::int64_t count, dtype type) {
  return rounded(random_tensor({count}, "leaf " + std::to_string(leaf)), type);
}

/// What one member that hosts all leaves has: the tree over all of them.
tensor tree_reduced(int num_leaves, std::int64_t count, dtype type, reduce_op op) {
  std::vector<tensor> inputs;
  std::vector<const std::byte*> places;
  for (int i = 0; i < num_leaves; ++i) {
    inputs.push_back(gradient_of(i, count, type));
    places.push_back(std::as_const(inputs.back()).bytes().data());
  }
  auto result = tensor::empty({count}, type);
  std::byte* place = result.bytes().data();
  tree_reduce(places, {&place, 1}, count, type, op);
  return result;
}

void expect_same_bits(const tensor& given, const tensor& wanted, const collective::logical_rank_map& map) {
  expect(std::memcmp(given.bytes().data(), wanted.bytes().data(), wanted.size_bytes()) == 0,
         "the bits of the tree in " + describe(wanted) + " of " + map.text());
}

/// The nodes of this member, in memory of its group or in its own.
tensor added_up(communicator& group, const collective::logical_rank_map& map, std::int64_t count, dtype type,
                bool is_group_memory) {
  auto num_nodes = static_cast<std::int64_t>(map.nodes_of(group.rank()).size());
  auto memory = is_group_memory ? group.allocate({num_nodes, count}) : tensor();
  collective::leaf_accumulator sums(map, group.rank(), count, memory);
  for (int leaf : map.leaves_of(group.rank())) sums.add(leaf, gradient_of(leaf, count, type));
  return sums.nodes();
}

struct leaf_call {
  std::int64_t count = 0;
  dtype type = dtype::f32;
  reduce_op op = reduce_op::sum;
  bool is_group_memory = false;
  bool is_in_place = false;  ///< the result replaces the first node, on members that have one
};

void expect_bits_of_one_member(communicator& group, const collective::logical_rank_map& map,
                               const leaf_call& how) {
  auto nodes = added_up(group, map, how.count, how.type, how.is_group_memory);
  bool replaces = how.is_in_place && how.type == dtype::f32 && nodes.defined();
  auto result = replaces              ? nodes.rows(0, 1).reshape({how.count})
                : how.is_group_memory ? group.allocate({how.count}, how.type)
                                      : tensor::empty({how.count}, how.type);
  group.all_reduce_leaves(nodes, result, map, how.op).wait();
  expect_same_bits(result, tree_reduced(map.num_leaves(), how.count, how.type, how.op), map);
}

/// 1 to 8 leaves; some members may have none. The same on all members.
collective::logical_rank_map drawn_map(std::minstd_rand& random, int num_members) {
  auto num_leaves = static_cast<int>(random() % 8 + 1);
  std::vector<std::vector<int>> leaves(static_cast<std::size_t>(num_members));
  std::size_t member = 0;
  bool is_in_runs = random() % 2 == 0;
  for (int leaf = 0; leaf < num_leaves; ++leaf) {
    if (leaf == 0 || !is_in_runs || random() % 2 == 0) member = random() % leaves.size();
    leaves[member].push_back(leaf);
  }
  return collective::logical_rank_map(std::move(leaves));
}

void drawn_maps(members& given) {
  if (!given.has_fixed_order) return;
  auto& group = given.all;
  std::minstd_rand random(static_cast<unsigned>(group.size()));
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (std::int64_t count : {0, 1, 3, 1000, 65537})
      for (int draw = 0; draw < (count > 1000 ? 2 : 6); ++draw) {
        leaf_call how{.count = count, .type = type};
        how.op = random() % 3 == 0 ? reduce_op::mean : reduce_op::sum;
        how.is_group_memory = random() % 2 == 0;
        how.is_in_place = random() % 2 == 0;
        expect_bits_of_one_member(group, drawn_map(random, group.size()), how);
      }
}

/// Member i hosts the leaves [i * each, (i + 1) * each), or those of the member `shift` after it.
collective::logical_rank_map even_map(int num_members, int each, int shift) {
  std::vector<std::vector<int>> leaves(static_cast<std::size_t>(num_members));
  for (int leaf = 0; leaf < num_members * each; ++leaf)
    leaves[static_cast<std::size_t>((leaf / each + shift) % num_members)].push_back(leaf);
  return collective::logical_rank_map(std::move(leaves));
}

void even_maps(members& given) {
  if (!given.has_fixed_order) return;
  auto& group = given.all;
  for (int each : {1, 2, 3, 4})
    for (int shift : {0, 1})
      for (auto type : {dtype::f32, dtype::bf16})
        for (auto op : {reduce_op::sum, reduce_op::mean})
          for (std::int64_t count : {33, 5000})
            expect_bits_of_one_member(group, even_map(group.size(), each, shift),
                                      {.count = count, .type = type, .op = op});
}

void all_on_one_member(members& given) {
  if (!given.has_fixed_order) return;
  auto& group = given.all;
  for (int host = 0; host < group.size(); ++host)
    for (std::int64_t count : {0, 5, 4001}) {
      std::vector<std::vector<int>> leaves(static_cast<std::size_t>(group.size()));
      leaves[static_cast<std::size_t>(host)] = {0, 1, 2, 3, 4};
      expect_bits_of_one_member(group, collective::logical_rank_map(leaves),
                                {.count = count, .type = dtype::f16});
    }
}

/// With the communicator's own all_reduce of the same tensors.
void one_leaf_on_each_member(members& given) {
  if (!given.has_fixed_order) return;
  auto& group = given.all;
  auto map = even_map(group.size(), 1, 0);
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (auto op : {reduce_op::sum, reduce_op::mean})
      for (std::int64_t count : {7, 1000, 30011}) {
        auto wanted = gradient_of(group.rank(), count, type), result = tensor::empty({count}, type);
        auto nodes = added_up(group, map, count, type, false);
        auto by_members = group.all_reduce(wanted, op);
        group.all_reduce_leaves(nodes, result, map, op).wait();
        by_members.wait();
        expect_same_bits(result, wanted, map);
      }
}

void other_orders(members& given) {
  if (given.has_fixed_order) return;
  auto& group = given.all;
  auto map = even_map(group.size(), 1, 0);
  std::string told;
  try {
    group.all_reduce_leaves(tensor::zeros({1, 3}), tensor::zeros({3}), map);
  } catch (const std::invalid_argument& refused) {
    told = refused.what();
  }
  auto wanted = "expected a group over ucx or local, which reduce in the fixed tree, got group " +
                group.group().name + " over " + std::string(group.backend());
  expect(told.find(wanted) != told.npos, "a refusal: " + told);
}

}  // namespace

std::vector<collective_case> leaf_reduction_cases() {
  return {{"leaves have the bits of one member that hosts all, however they are hosted", drawn_maps},
          {"leaves in equal numbers have the bits of one member that hosts all", even_maps},
          {"leaves that are all on one member reach the others", all_on_one_member},
          {"a leaf on each member has the bits of all_reduce", one_leaf_on_each_member},
          {"leaves are refused where reductions have another order", other_orders}};
}

}  // namespace troupe::testing
