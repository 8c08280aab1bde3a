#include "memory_kills.hpp"

#include <fstream>
#include <system_error>
#include <utility>

namespace troupe {
namespace {

/// The number after the word `name`; 0 without.
std::uint64_t number_after(const std::filesystem::path& file, const std::string& name) {
  std::ifstream stream(file);
  std::string word;
  std::uint64_t number = 0;
  while (stream >> word)
    if (word == name && stream >> number) return number;
  return 0;
}

/// In a container the path is often that of the host, and its own group is mounted at `root`.
std::optional<memory_kill_counter> counter_in(const std::filesystem::path& root, const std::string& path,
                                              const char* events, const char* limit) {
  std::error_code ignored;
  for (const auto& folder : {root / std::filesystem::path(path).relative_path(), root})
    if (std::filesystem::exists(folder / events, ignored))
      return memory_kill_counter{folder / events, folder / limit};
  return {};
}

}  // namespace

std::optional<memory_kill_counter> find_memory_kill_counter(const std::filesystem::path& proc_cgroup,
                                                            const std::filesystem::path& root) {
  // Lines NUMBER:CONTROLLERS:PATH; version 2 has no controllers.
  std::ifstream stream(proc_cgroup);
  for (std::string line; std::getline(stream, line);) {
    auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    auto path = line.substr(second + 1);
    std::optional<memory_kill_counter> found;
    if (controllers == ",,") found = counter_in(root, path, "memory.events", "memory.max");
    if (controllers.find(",memory,") != std::string::npos)
      found = counter_in(root / "memory", path, "memory.oom_control", "memory.limit_in_bytes");
    if (found) return found;
  }
  return {};
}

memory_kills::memory_kills(std::optional<memory_kill_counter> counter) : counter_(std::move(counter)) {
  if (counter_) num_told_ = number_after(counter_->events, "oom_kill");
}

/// The kernel counts before it kills.
std::string memory_kills::explain() {
  if (!counter_ || number_after(counter_->events, "oom_kill") <= num_told_) return {};
  ++num_told_;
  std::string limit;
  std::ifstream(counter_->limit) >> limit;
  return "memory ran out, and the kernel killed a process of this control group" +
         (limit.empty() || limit == "max"
              ? std::string()
              : ", whose limit " + counter_->limit.filename().string() + " is " + limit + " bytes");
}

}  // namespace troupe
