#include <cstring>

#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"
#include "support/random_tensor.hpp"
#include "support/rounded.hpp"

namespace troupe::testing {
namespace {

/// The input of `member`, which every member can compute.
tensor input_of(int member, std::int64_t count, dtype type) {
  return rounded(random_tensor({count}, "member " + std::to_string(member)), type);
}

tensor tree_reduced(int num_members, std::int64_t count, dtype type, reduce_op op) {
  std::vector<tensor> inputs;
  std::vector<const std::byte*> places;
  for (int i = 0; i < num_members; ++i) {
    inputs.push_back(input_of(i, count, type));
    places.push_back(inputs.back().bytes().data());
  }
  auto result = tensor::empty({count}, type);
  std::byte* place = result.bytes().data();
  tree_reduce(places, {&place, 1}, count, type, op);
  return result;
}

void expect_same_bits(const tensor& given, const tensor& wanted) {
  expect(std::memcmp(given.bytes().data(), wanted.bytes().data(), wanted.size_bytes()) == 0,
         "the bits of the fixed tree in " + describe(wanted));
}

void bits_of_the_tree(members& given) {
  if (!given.has_fixed_order) return;
  auto& group = given.all;
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (auto op : {reduce_op::sum, reduce_op::mean, reduce_op::product})
      for (std::int64_t part : {3, 120, 1500}) {
        auto count = part * group.size();
        auto wanted = tree_reduced(group.size(), count, type, op);
        auto x = input_of(group.rank(), count, type);
        auto own = tensor::empty({part}, type);
        auto on_root = group.rank() == 0 ? tensor::empty({count}, type) : tensor();
        group.reduce_scatter(x, own, op).wait();
        group.reduce(x, on_root, 0, op).wait();
        group.all_reduce(x, op).wait();
        expect_same_bits(x, wanted);
        expect_same_bits(own, wanted.rows(group.rank() * part, part));
        if (group.rank() == 0) expect_same_bits(on_root, wanted);
      }
}

}  // namespace

std::vector<collective_case> fixed_order_cases() {
  return {{"reductions have the bits of the fixed tree", bits_of_the_tree}};
}

}  // namespace troupe::testing
