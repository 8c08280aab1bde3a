#pragma once
#include <CLI/CLI.hpp>

namespace troupe::usage {

/// `app.parse(argc, argv)`, after what CLI11 accepts in silence is refused. All programs begin with it.
/// Throws bad_input
/// - if an option of the program stands where the value of another one belongs: `--snapshot-dir --resume`.
///   `--snapshot-dir=--resume` is such a value. All other words are values, also those that begin with a
///   dash;
/// - if nothing follows the '=': `--snapshot-dir= --resume`, from a variable of the shell that is not set.
///   `--prompt ''` is an empty value;
/// - for whole numbers that 64 bits, or an option without negative values, do not hold: CLI11 changes them.
void parse_command_line(CLI::App& app, int argc, const char* const* argv);

}  // namespace troupe::usage
