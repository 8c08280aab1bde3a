#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::testing {

/// "0F0 0F1 0B0".
inline std::string notation(const std::vector<action>& actions) {
  std::string text;
  for (const auto& op : actions) text.append(text.empty() ? "" : " ").append(to_string(op));
  return text;
}

/// The plan with an action of device 0 moved before another one.
inline plan moved(plan of, const char* what, const char* before) {
  auto& list = of.devices[0];
  auto op = action_from(what);
  list.erase(std::ranges::find(list, op));
  list.insert(std::ranges::find(list, action_from(before)), op);
  return of;
}

/// Why make_plan refuses the options, or "accepted".
inline std::string refusal(const plan_options& options) {
  try {
    make_plan(options);
  } catch (const bad_input& problem) {
    return problem.what();
  }
  return "accepted";
}

}  // namespace troupe::testing
