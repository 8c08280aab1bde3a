#pragma once
#include <CLI/CLI.hpp>

#include "troupe/config/job_options.hpp"

namespace troupe::config {

/// Adds every field of job_options as an option (`--snapshot-dir`), with its help and `options`' present
/// value as the default, and `--config FILE` for a YAML file. What stands on the command line wins over the
/// file, in whatever order they are given. The file may also set options with a value that are added to `app`
/// after this call, by their names with '_' for '-'. `options` must outlive the parsing (parse_command_line),
/// which throws bad_input for values that cannot be used.
void add_job_options(CLI::App& app, job_options& options);

}  // namespace troupe::config
