#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::bench {

/// How a program ended, and what it printed.
struct finished_process {
  int exit_code = 0;  ///< 128 + signal if a signal ended it
  std::string output, errors;
};

/// Runs a program to its end; `environment` ("NAME=value") is added to this process's. Throws bad_input if
/// the program cannot be executed.
finished_process run_process(const std::vector<std::string>& command,
                             const std::vector<std::string>& environment = {});

/// Runs a program and returns the last JSON object that it printed. Throws std::runtime_error if it failed or
/// printed none.
nlohmann::json run_for_object(const std::vector<std::string>& command);

/// Everything until the other end is closed.
std::string read_all(const posix::unique_fd& from);

/// The lines of `text` that are JSON objects.
std::vector<nlohmann::json> json_objects_in(const std::string& text);

/// "NAME=value" of this process and, before these, `more`.
std::vector<std::string> environment_with(const std::vector<std::string>& more);

/// Throws what an exit code other than 0 means: bad_input for 2, the code for input that the user has to
/// correct, otherwise std::runtime_error. `what` and `errors` make its message.
void check_exit_code(int code, const std::string& what, const std::string& errors);

/// Why `program` cannot be run, given its Debian package; empty if it can be.
std::string why_missing(const std::string& program, const std::string& package);

/// A file in memory of so many bytes, zero at first. Other processes can open path_of(file).
posix::unique_fd make_memory_file(std::size_t size_bytes = 0);
std::string path_of(const posix::unique_fd& file);

/// The path of this program.
std::string this_program();
/// The path of another program in the same folder.
std::string sibling_program(const std::string& name);

/// `troupe bench worker NAME OPTIONS` (see add_worker).
std::vector<std::string> worker_command(const std::string& name, const nlohmann::json& options);
/// The command, whose OpenMP threads sleep when they wait: they leave their cores to other processes.
std::vector<std::string> passively_waiting(std::vector<std::string> command);

}  // namespace troupe::bench
