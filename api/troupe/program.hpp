#pragma once
#include <functional>
#include <string>
#include <vector>

#include "troupe/config/job_options.hpp"

namespace troupe {

/// A command-line option of the program, for example "--model". `value` points to the string that receives
/// its text; the string's initial content is the default.
struct program_option {
  std::string name;
  std::string description;
  std::string* value = nullptr;
};

/// Runs a training program: parses the command line (every field of job_options, `--config FILE`, `--help`
/// and the program's own options), calls `body` with the options, and returns the exit code. An exception
/// becomes a message on standard error and an exit code: 2 for bad_input (a restart would not help), 128 +
/// signal for job_stopped, 1 otherwise.
int run_program(int argc, char** argv, job_options options,
                const std::function<void(const job_options&)>& body,
                const std::vector<program_option>& own_options = {});

}  // namespace troupe
