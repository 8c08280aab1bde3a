#pragma once
#include <string>
#include <vector>

namespace troupe::doctor {

/// How good or bad a finding is.
enum class verdict {
  ok,
  absent,   ///< something optional that is not there
  warning,  ///< the demo runs, but something is slower or tighter than it should be
  missing   ///< the demo cannot run
};

/// One line of the diagnosis.
struct finding {
  std::string group;  ///< "libraries", "machine", ...
  std::string name;
  verdict status = verdict::ok;
  std::string value;   ///< what was found
  std::string remedy;  ///< the command that mends it; empty where there is nothing to mend
  bool operator==(const finding&) const = default;
};

using findings = std::vector<finding>;

}  // namespace troupe::doctor
