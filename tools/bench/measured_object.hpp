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

/// The same for torch_compute.py in a chroot at `root`. Throws bad_input if the script cannot be read.
nlohmann::json run_torch(const std::filesystem::path& root, const std::filesystem::path& script, int threads,
                         const std::vector<std::string>& arguments);

}  // namespace troupe::bench
