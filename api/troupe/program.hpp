#pragma once
#include <functional>
#include <string>
#include <vector>

#include "troupe/config/job_options.hpp"

namespace troupe {

/// A command-line option of a program's own: "--model", what it is, and where its text goes, which is the
/// default until then.
struct program_option {
  std::string name;
  std::string description;
  std::string* value = nullptr;
};

/// The frame of a training program: reads the command line (every field of job_options, `--config FILE`,
/// `--help`) into `options`, and
/// the program's own options, runs `body`, and turns what it throws into a message on standard error and an
/// exit code: 2 for bad input, which starting again would not cure, 1 for all else.
int run_program(int argc, char** argv, job_options options,
                const std::function<void(const job_options&)>& body,
                const std::vector<program_option>& own_options = {});

}  // namespace troupe
