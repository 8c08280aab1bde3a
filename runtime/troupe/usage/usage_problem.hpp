#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace troupe::usage {

/// What is wrong with a command line that `app` could not parse, in one line: the word in question, what was
/// probably meant, and how to see what there is.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem);

/// " See `troupe schedule --help`", of a command of a program.
std::string see_help(const CLI::App& command);

/// "; did you mean '--json'?" if `command` has an option like `word`, or else nothing.
std::string did_you_mean(const CLI::App& command, const std::string& word);

}  // namespace troupe::usage
