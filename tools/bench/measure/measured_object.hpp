#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe::bench {

/// Runs a program and returns the last JSON object it printed. Throws std::runtime_error if it failed or
/// printed none.
nlohmann::json last_object(const std::vector<std::string>& command,
                           const std::vector<std::string>& environment);

/// How to start a script that needs PyTorch: in the system at `root` by chroot, with an OpenBLAS whose
/// threads are OpenMP's, or, if that is /, with this system's python3. Throws bad_input if it cannot be read.
std::vector<std::string> torch_command(const std::filesystem::path& root, const std::filesystem::path& script,
                                       int threads);

/// What torch_compute.py measured, as last_object.
nlohmann::json run_torch(const std::filesystem::path& root, const std::filesystem::path& script, int threads,
                         const std::vector<std::string>& arguments);

}  // namespace troupe::bench
