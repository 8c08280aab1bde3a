#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/action_graph.hpp"

namespace troupe::schedule {

/// One sentence for each cycle of actions that wait for each other for ever (a deadlock); empty if the plan
/// can run to its end. When a cycle is found, the inputs of its actions are taken for present and the search
/// goes on, so that each sentence is an independent fault.
std::vector<std::string> find_cycles(action_graph graph);

}  // namespace troupe::schedule
