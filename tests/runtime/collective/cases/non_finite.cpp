#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"

namespace troupe::testing {
namespace {

constexpr auto infinity = std::numeric_limits<double>::infinity();
constexpr auto nan = std::numeric_limits<double>::quiet_NaN();

/// Element i of `member`: by i one of the rows below, in which each member has NaN once, with each sign.
double input_of(int member, int num_members, std::int64_t i) {
  auto row = i % (num_members + 5);
  if (row < num_members) return row == member ? (i % 2 == 0 ? nan : -nan) : static_cast<double>(member + 1);
  switch (row - num_members) {
    case 0:
      return nan;
    case 1:
      return member == 0 ? infinity : 2;
    case 2:
      return member == num_members - 1 ? -infinity : 2;
    case 3:
      return member % 2 == 0 ? infinity : -infinity;
    default:
      return member % 2 == 0 ? -1.5 : 2.5;
  }
}

double combined(reduce_op op, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return nan;
  if (op == reduce_op::max) return std::max(a, b);
  if (op == reduce_op::min) return std::min(a, b);
  return op == reduce_op::product ? a * b : a + b;
}

double reduced(reduce_op op, int num_members, std::int64_t i) {
  double result = input_of(0, num_members, i);
  for (int member = 1; member < num_members; ++member)
    result = combined(op, result, input_of(member, num_members, i));
  return op == reduce_op::mean ? result / num_members : result;
}

struct reduction {
  dtype type;
  reduce_op op;
};

/// Element i of x is NaN where the reduction of element first + i is, else that value or close to it: a mean
/// is rounded.
void expect_reduced(const tensor& x, reduction how, int num_members, std::int64_t first = 0) {
  with_type(x.dtype(), [&](auto one) {
    using T = decltype(one);
    auto i = first;
    for (const T& each : x.values<T>()) {
      auto got = static_cast<double>(static_cast<float>(each));
      auto wanted = reduced(how.op, num_members, i++);
      bool is_right = std::isnan(wanted)   ? std::isnan(got)
                      : std::isinf(wanted) ? got == wanted
                                           : std::abs(got - wanted) <= std::abs(wanted) / 64;
      expect(is_right, std::string(to_string(how.op)) + " of element " + std::to_string(i - 1) + " of " +
                           describe(x) + " to be " + std::to_string(wanted) + ", got " + std::to_string(got));
    }
  });
}

/// Calls `body` with each floating type, operation and size.
template <class Body>
void for_each_reduction(Body body) {
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (auto op : reduce_ops)
      for (auto count : case_sizes(type)) body(reduction{type, op}, count);
}

tensor input(const communicator& group, dtype type, std::int64_t count) {
  return filled(count, type, [&](std::int64_t i) { return input_of(group.rank(), group.size(), i); });
}

void all_reduces(members& given) {
  auto& group = given.all;
  for_each_reduction([&](reduction how, std::int64_t count) {
    auto x = input(group, how.type, count), result = placed(count, how.type);
    group.all_reduce(x, result, how.op).wait();
    expect_reduced(result, how, group.size());
    group.all_reduce(x, how.op).wait();
    expect_reduced(x, how, group.size());
  });
}

void reduces(members& given) {
  auto& group = given.all;
  for_each_reduction([&](reduction how, std::int64_t count) {
    int root = static_cast<int>(count % group.size());
    auto x = input(group, how.type, count);
    auto result = group.rank() == root ? placed(count, how.type) : tensor();
    group.reduce(x, result, root, how.op).wait();
    if (group.rank() == root) expect_reduced(result, how, group.size());
  });
}

void reduce_scatters(members& given) {
  auto& group = given.all;
  for_each_reduction([&](reduction how, std::int64_t part) {
    auto x = input(group, how.type, part * group.size()), result = placed(part, how.type);
    group.reduce_scatter(x, result, how.op).wait();
    expect_reduced(result, how, group.size(), group.rank() * part);
  });
}

void reduce_scatters_of_unequal_parts(members& given) {
  auto& group = given.all;
  for_each_reduction([&](reduction how, std::int64_t step) {
    std::vector<std::int64_t> parts;
    std::int64_t total = 0, begin = 0;
    for (int i = 0; i < group.size(); ++i) {
      if (i == group.rank()) begin = total;
      total += parts.emplace_back(i * step);
    }
    auto x = input(group, how.type, total), result = placed(group.rank() * step, how.type);
    group.reduce_scatter(x, result, parts, how.op).wait();
    expect_reduced(result, how, group.size(), begin);
  });
}

}  // namespace

std::vector<collective_case> non_finite_cases() {
  return {{"all_reduce keeps NaN and infinities, whichever member has them", all_reduces},
          {"reduce keeps NaN and infinities", reduces},
          {"reduce_scatter keeps NaN and infinities", reduce_scatters},
          {"reduce_scatter of unequal parts keeps NaN and infinities", reduce_scatters_of_unequal_parts}};
}

}  // namespace troupe::testing
