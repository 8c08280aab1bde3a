#include <stdexcept>

#include "runtime/collective/cases/collective_case.hpp"

namespace troupe::testing {

void run_collective_cases(members& given) {
  for (auto* cases : {reduction_cases, non_finite_cases, copying_cases, message_cases, many_calls_cases,
                      many_groups_cases, fixed_order_cases, leaf_reduction_cases}) {
    for (const auto& each : cases()) {
      try {
        each.run(given);
      } catch (const std::exception& failure) {
        throw std::runtime_error("member " + std::to_string(given.all.rank()) + " of " +
                                 std::to_string(given.all.size()) + ", \"" + std::string(each.name) +
                                 "\": " + failure.what());
      }
    }
  }
}

}  // namespace troupe::testing
