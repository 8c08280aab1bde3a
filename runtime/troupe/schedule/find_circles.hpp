#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/action_graph.hpp"

namespace troupe {

/// One sentence for each circle of actions that wait for each other for ever; empty if the plan can run to
/// its end. After a circle is found, the search goes on as if all its actions wait for were there, so that
/// each sentence is a fault of its own.
std::vector<std::string> find_circles(action_graph graph);

}  // namespace troupe
