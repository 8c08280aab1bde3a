#include "troupe/program/non_finite_policy.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

std::string_view to_string(non_finite_policy policy) {
  if (policy == non_finite_policy::stop) return "stop";
  return policy == non_finite_policy::skip ? "skip" : "go_on";
}

non_finite_policy non_finite_policy_from(std::string_view name) {
  for (auto known : {non_finite_policy::stop, non_finite_policy::skip, non_finite_policy::go_on})
    if (name == to_string(known)) return known;
  throw bad_input("--on-non-finite must be one of stop, skip, go_on, got '" + std::string(name) + "'");
}

}  // namespace troupe
