#pragma once
#include <CLI/CLI.hpp>

namespace troupe {

/// Parses the arguments and runs the subcommand they name. Returns the program's exit code: 2, with a line on
/// standard error, for errors that the user has to correct, 1 for any other failure, else the subcommand's
/// `exit_code`.
int run_program(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace troupe
