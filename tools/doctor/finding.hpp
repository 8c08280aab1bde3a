#pragma once
#include <string>
#include <vector>

namespace troupe::doctor {

/// The severity of a finding.
enum class verdict {
  ok,
  absent,   ///< something optional is not there
  warning,  ///< the demo runs, but something is slower or tighter than it should be
  missing   ///< the demo cannot run
};

/// One line of the diagnosis.
struct finding {
  std::string group;  ///< "libraries", "machine", ...
  std::string name;
  verdict status = verdict::ok;
  std::string value;   ///< what was found
  std::string remedy;  ///< the command that solves the problem; empty if there is none
  bool operator==(const finding&) const = default;
};

using findings = std::vector<finding>;

}  // namespace troupe::doctor
