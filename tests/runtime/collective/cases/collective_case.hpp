#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::testing {

/// The arguments of a case: one member's end of a group of all processes, and a function that makes others.
struct members {
  communicator& all;
  /// Called by every member of the group; `ranks` of `all`.
  std::function<std::unique_ptr<communicator>(const std::string& name, const std::vector<world_rank>& ranks)>
      make_group;
  /// Whether reductions are those of tree_reduce, bit for bit.
  bool has_fixed_order = true;
};

/// A part of the backend contract, as a function that every member of a group runs. It throws if the contract
/// is violated.
struct collective_case {
  std::string_view name;
  void (*run)(members& given);
};

std::vector<collective_case> reduction_cases();
std::vector<collective_case> non_finite_cases();
std::vector<collective_case> copying_cases();
std::vector<collective_case> message_cases();
std::vector<collective_case> many_calls_cases();
std::vector<collective_case> many_groups_cases();
std::vector<collective_case> fixed_order_cases();
std::vector<collective_case> leaf_reduction_cases();

/// Runs all cases, one after the other, on this member. Throws std::runtime_error with the name of a failed
/// case.
void run_collective_cases(members& given);

}  // namespace troupe::testing
