#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"

namespace troupe::testing {
namespace {

/// A barrier ends when all members have entered it: messages sent before it have arrived after it.
void barriers_between_calls(members& given) {
  auto& group = given.all;
  for (int i = 0; i < 50; ++i) {
    auto x = filled(3, dtype::i64, [&](std::int64_t) { return group.rank() == i % group.size() ? i : 0; });
    auto summing = group.all_reduce(x);
    group.barrier().wait();
    expect(summing.is_done(), "calls to end in their order");
    expect_elements(x, [&](std::int64_t) { return i; });
  }
}

/// Waits for the calls in another order than that in which they were made, which differs between members.
void waits_in_another_order(members& given) {
  auto& group = given.all;
  constexpr std::size_t num_calls = 1000;
  std::vector<tensor> values;
  std::vector<work> running;
  for (std::size_t i = 0; i < num_calls; ++i) {
    auto count = static_cast<std::int64_t>(i % 100 == 0 ? 3000 : i % 9);
    values.push_back(filled(count, dtype::i32, [&](std::int64_t) { return static_cast<double>(i); }));
    auto by =
        (i + static_cast<std::size_t>(group.rank())) % 3 == 0 ? progress_by::waiter : progress_by::background;
    running.push_back(group.all_reduce(values.back(), reduce_op::sum, {.progress = by}));
  }
  for (std::size_t i = 0; i < num_calls; ++i) {
    auto at = (i * 381 + static_cast<std::size_t>(group.rank()) * 97) % num_calls;  // 381 and 1000: coprime
    running[at].wait();
    expect_elements(values[at], [&](std::int64_t) { return static_cast<double>(at) * group.size(); });
  }
}

/// Calls complete although their handles are dropped.
void handles_are_dropped(members& given) {
  auto& group = given.all;
  auto x = tensor::full({17}, 1);
  for (int i = 0; i < 5; ++i) group.all_reduce(x, reduce_op::mean);
  group.barrier().wait();
  expect_elements(x, [](std::int64_t) { return 1; });
}

/// Every member alternates between progress by its own thread and by the engine.
void progress_of_both_kinds(members& given) {
  auto& group = given.all;
  for (int i = 0; i < 200; ++i) {
    auto by = (i + group.rank()) % 2 == 0 ? progress_by::waiter : progress_by::background;
    auto x = filled(i % 20 == 0 ? 5000 : 3, dtype::f32, [&](std::int64_t) { return i; });
    group.all_reduce(x, reduce_op::max, {.progress = by}).wait();
    expect_elements(x, [&](std::int64_t) { return i; });
  }
}

}  // namespace

std::vector<collective_case> many_calls_cases() {
  return {{"calls end in their order", barriers_between_calls},
          {"a thousand calls in flight are waited for in any order", waits_in_another_order},
          {"calls end without a handle", handles_are_dropped},
          {"calls progress by waiting members or in the background", progress_of_both_kinds}};
}

}  // namespace troupe::testing
