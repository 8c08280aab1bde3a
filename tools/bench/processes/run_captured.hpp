#pragma once
#include <string>
#include <vector>

namespace troupe::bench {

struct captured {
  int exit_code = 0;  ///< 128 + signal if one ended it
  std::string output, errors;
};

/// Runs a program to its end and keeps what it prints. Throws bad_input if it cannot be executed.
captured run_captured(const std::vector<std::string>& command,
                      const std::vector<std::string>& more_environment = {});

/// This process's environment and more.
std::vector<std::string> environment_with(const std::vector<std::string>& more);

}  // namespace troupe::bench
