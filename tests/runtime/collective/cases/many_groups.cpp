#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"

namespace troupe::testing {
namespace {

tensor own_rank(const communicator& all) { return tensor::full({100}, static_cast<float>(all.rank())); }

/// Each pair of neighbours has a group of its own; calls of all groups are in flight at once.
void overlapping_groups(members& given) {
  auto& all = given.all;
  std::vector<std::unique_ptr<communicator>> groups;
  std::vector<int> firsts;
  for (int first = 0; first + 1 < all.size(); ++first) {
    if (all.rank() != first && all.rank() != first + 1) continue;
    groups.push_back(given.make_group("pair " + std::to_string(first), {first, first + 1}));
    firsts.push_back(first);
  }
  for (int round = 0; round < 20; ++round) {
    std::vector<tensor> sums;
    std::vector<work> running;
    for (auto& group : groups) {
      sums.push_back(own_rank(all));
      running.push_back(group->all_reduce(sums.back()));
    }
    for (std::size_t i = running.size(); i-- > 0;) {
      running[i].wait();
      expect_elements(sums[i], [&](std::int64_t) { return 2 * firsts[i] + 1; });
    }
  }
  all.barrier().wait();  // no process ends while others still wait for its group
}

/// Members in another order than their ranks, and the same members in many groups.
void many_groups_of_the_same_members(members& given) {
  auto& all = given.all;
  std::vector<world_rank> reversed;
  for (int i = all.size(); i-- > 0;) reversed.push_back(i);
  std::vector<std::unique_ptr<communicator>> groups;
  for (int i = 0; i < 6; ++i) groups.push_back(given.make_group("reversed " + std::to_string(i), reversed));
  std::vector<tensor> gathered;
  std::vector<work> running;
  for (auto& group : groups) {
    expect(group->rank() == all.size() - 1 - all.rank(), "members in the order of the ranks");
    gathered.push_back(tensor::zeros({100 * all.size()}));
    running.push_back(group->all_gather(own_rank(all), gathered.back()));
  }
  for (auto& each : running) each.wait();
  for (const auto& each : gathered)
    expect_elements(each, [&](std::int64_t i) {
      auto member = all.size() - 1 - i / 100;
      return static_cast<double>(member);
    });
  all.barrier().wait();
}

}  // namespace

std::vector<collective_case> many_groups_cases() {
  return {{"groups overlap", overlapping_groups},
          {"many groups have the same members in another order", many_groups_of_the_same_members}};
}

}  // namespace troupe::testing
