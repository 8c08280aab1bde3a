#include <algorithm>

#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"

namespace troupe::testing {
namespace {

// Small whole numbers, so that every order gives the same exact results in every dtype.
double input_of(reduce_op op, int member, std::int64_t i) {
  if (op == reduce_op::product) return (member + i) % 2 == 0 ? 2 : 1;
  return static_cast<double>((member * 3 + i * 7) % 5 + 1);
}

double reduced(reduce_op op, int num_members, std::int64_t i) {
  double result = input_of(op, 0, i);
  for (int member = 1; member < num_members; ++member) {
    auto next = input_of(op, member, i);
    if (op == reduce_op::sum || op == reduce_op::mean) result += next;
    if (op == reduce_op::max) result = std::max(result, next);
    if (op == reduce_op::min) result = std::min(result, next);
    if (op == reduce_op::product) result *= next;
  }
  return op == reduce_op::mean ? result / num_members : result;
}

/// Calls `body` with each dtype and operation.
template <class Body>
void for_each_reduction(Body body) {
  for (auto type : collective_types)
    for (auto op : reduce_ops) body(type, op);
}

void all_reduce_in_place(members& given) {
  auto& group = given.all;
  for_each_reduction([&](dtype type, reduce_op op) {
    for (auto count : case_sizes(type))
      for (auto where : {placement::aligned, placement::shifted}) {
        auto x = filled(
            count, type, [&](std::int64_t i) { return input_of(op, group.rank(), i); }, where);
        group.all_reduce(x, op).wait();
        expect_elements(x, [&](std::int64_t i) { return reduced(op, group.size(), i); });
      }
  });
}

void all_reduce_out_of_place(members& given) {
  auto& group = given.all;
  for_each_reduction([&](dtype type, reduce_op op) {
    for (auto count : case_sizes(type)) {
      auto own = [&](std::int64_t i) { return input_of(op, group.rank(), i); };
      auto x = filled(count, type, own);
      auto result = placed(count, type, placement::shifted);
      group.all_reduce(x, result, op).wait();
      expect_elements(result, [&](std::int64_t i) { return reduced(op, group.size(), i); });
      expect_elements(x, own);
    }
  });
}

void all_reduce_of_many_elements(members& given) {
  auto& group = given.all;
  for (auto type : {dtype::f32, dtype::bf16, dtype::i64}) {
    std::int64_t count = 300007;
    auto x = filled(count, type, [&](std::int64_t i) { return input_of(reduce_op::sum, group.rank(), i); });
    group.all_reduce(x).wait();
    expect_elements(x, [&](std::int64_t i) { return reduced(reduce_op::sum, group.size(), i); });
  }
}

void reduce_scatter_of_equal_parts(members& given) {
  auto& group = given.all;
  for_each_reduction([&](dtype type, reduce_op op) {
    for (auto part : case_sizes(type)) {
      auto x =
          filled(part * group.size(), type, [&](std::int64_t i) { return input_of(op, group.rank(), i); });
      auto result = placed(part, type, placement::shifted);
      group.reduce_scatter(x, result, op).wait();
      expect_elements(result,
                      [&](std::int64_t i) { return reduced(op, group.size(), group.rank() * part + i); });
    }
  });
}

void reduce_scatter_in_place(members& given) {
  auto& group = given.all;
  for (std::int64_t part : {5, 1024, 5000}) {
    auto x = filled(part * group.size(), dtype::f32,
                    [&](std::int64_t i) { return input_of(reduce_op::sum, group.rank(), i); });
    auto own = x.rows(group.rank() * part, part);
    group.reduce_scatter(x, own).wait();
    expect_elements(
        own, [&](std::int64_t i) { return reduced(reduce_op::sum, group.size(), group.rank() * part + i); });
  }
}

void reduce_scatter_of_unequal_parts(members& given) {
  auto& group = given.all;
  for_each_reduction([&](dtype type, reduce_op op) {
    for (std::int64_t step : {1, 700, 3000}) {
      std::vector<std::int64_t> parts;  // the first member gets nothing
      std::int64_t total = 0, begin = 0;
      for (int i = 0; i < group.size(); ++i) {
        if (i == group.rank()) begin = total;
        parts.push_back(i * step);
        total += parts.back();
      }
      auto x = filled(total, type, [&](std::int64_t i) { return input_of(op, group.rank(), i); });
      auto result = placed(group.rank() * step, type);
      group.reduce_scatter(x, result, parts, op).wait();
      expect_elements(result, [&](std::int64_t i) { return reduced(op, group.size(), begin + i); });
    }
  });
}

void reduce_to_every_root(members& given) {
  auto& group = given.all;
  for_each_reduction([&](dtype type, reduce_op op) {
    for (int root = 0; root < group.size(); ++root)
      for (auto count : case_sizes(type)) {
        auto own = [&](std::int64_t i) { return input_of(op, group.rank(), i); };
        auto x = filled(count, type, own);
        bool in_place = root % 2 == 1;
        auto result = group.rank() != root ? tensor() : in_place ? x : placed(count, type);
        group.reduce(x, result, root, op).wait();
        if (group.rank() == root)
          expect_elements(result, [&](std::int64_t i) { return reduced(op, group.size(), i); });
        if (group.rank() != root || !in_place) expect_elements(x, own);
      }
  });
}

}  // namespace

std::vector<collective_case> reduction_cases() {
  return {{"all_reduce in place replaces each member's input", all_reduce_in_place},
          {"all_reduce out of place does not change its input", all_reduce_out_of_place},
          {"all_reduce of many elements", all_reduce_of_many_elements},
          {"reduce_scatter gives each member its part", reduce_scatter_of_equal_parts},
          {"reduce_scatter may write into its own part of the input", reduce_scatter_in_place},
          {"reduce_scatter of unequal parts, an empty one among them", reduce_scatter_of_unequal_parts},
          {"reduce delivers the result to every root", reduce_to_every_root}};
}

}  // namespace troupe::testing
