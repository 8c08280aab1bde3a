#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe::bench {

/// Has mpirun start so many processes of a program on this host, and returns the JSON objects they printed.
/// Waiting processes yield their core where there are more processes than cores. Throws bad_input if there is
/// no mpirun or the program refused its input, std::runtime_error if it failed.
std::vector<nlohmann::json> run_by_mpirun(int num_processes, const std::vector<std::string>& command);

}  // namespace troupe::bench
