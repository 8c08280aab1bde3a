#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace troupe::bench {

/// Where something is measured, and how busy that was before.
struct machine {
  std::string processor;
  int cores = 0;    ///< that this process may use
  double load = 0;  ///< processes that wanted to run, over the last minute
};

machine this_machine();
nlohmann::ordered_json to_json(const machine& where);
/// "4 cores (model), load 0.50 before"
std::string to_text(const machine& where);

}  // namespace troupe::bench
