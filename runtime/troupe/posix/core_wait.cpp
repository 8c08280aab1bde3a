#include "troupe/posix/core_wait.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace troupe::posix {

std::uint64_t core_wait::total_ns() {
  std::map<int, std::uint64_t> now;
  std::error_code unknown;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", unknown)) {
    auto name = thread.path().filename().string();
    int id = 0;
    std::from_chars(name.data(), name.data() + name.size(), id);
    std::uint64_t ran_ns = 0, waited_ns = 0;
    if (!(std::ifstream(thread.path() / "schedstat") >> ran_ns >> waited_ns)) continue;  // it has ended
    now[id] = waited_ns;
    auto before = by_thread_.find(id);
    if (was_called_)
      total_ns_ += waited_ns - std::min(waited_ns, before == by_thread_.end() ? 0 : before->second);
  }
  by_thread_ = std::move(now);
  was_called_ = true;
  return total_ns_;
}

}  // namespace troupe::posix
