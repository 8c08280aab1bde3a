#pragma once
#include <functional>

#include "troupe/config/job_options.hpp"

namespace troupe {

/// The frame of a training program: reads the command line (every field of job_options, `--config FILE`,
/// `--help`) into `options`, runs `body`, and turns what it throws into a message on standard error and an
/// exit code: 2 for bad input, which starting again would not cure, 1 for all else.
int run_program(int argc, char** argv, job_options options,
                const std::function<void(const job_options&)>& body);

}  // namespace troupe
