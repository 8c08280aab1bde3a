#include "troupe/posix/thread_limit.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace troupe {
namespace {

/// The number in a file; none without one, as where it says "max".
std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return {};
}

/// Of a group and those around it, the least: each of them limits the processes within.
void read_control_group(thread_limits& into, const std::filesystem::path& mount,
                        std::filesystem::path folder) {
  while (true) {
    auto file = mount / folder.relative_path() / "pids.max";
    auto limit = number_in(file);
    if (limit && (!into.of_control_group || *limit < *into.of_control_group)) {
      into.of_control_group = limit;
      into.control_group_file = file;
    }
    if (folder.relative_path().empty()) return;
    folder = folder.parent_path();
  }
}

void* wait_for(void* end) {
  static_cast<std::latch*>(end)->wait();
  return nullptr;
}

}  // namespace

thread_limits read_thread_limits(const std::filesystem::path& proc_cgroup,
                                 const std::filesystem::path& root) {
  thread_limits limits;
  rlimit of_user{};
  if (::getrlimit(RLIMIT_NPROC, &of_user) == 0 && of_user.rlim_cur != RLIM_INFINITY)
    limits.of_user = of_user.rlim_cur;
  // Lines NUMBER:CONTROLLERS:PATH; version 2 has no controllers.
  std::ifstream stream(proc_cgroup);
  for (std::string line; std::getline(stream, line);) {
    auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    auto path = line.substr(second + 1);
    if (controllers == ",,") read_control_group(limits, root, path);
    if (controllers.find(",pids,") != std::string::npos) read_control_group(limits, root / "pids", path);
  }
  return limits;
}

std::string describe(const thread_limits& limits) {
  std::string text;
  if (limits.of_user)
    text = "the user's limit of processes and threads is " + std::to_string(*limits.of_user) + " (ulimit -u)";
  if (limits.of_control_group)
    text += (text.empty() ? "" : ", ") + std::string("that of the control group is ") +
            std::to_string(*limits.of_control_group) + " (" + limits.control_group_file.string() + ")";
  if (text.empty()) text = "neither ulimit -u nor a control group's pids.max is set: memory may have run out";
  return text +
         ". Raise it (ulimit -u, --pids-limit of a container, TasksMax of a service), or run fewer processes";
}

int count_startable_threads(int wanted) {
  std::latch end(1);
  std::vector<pthread_t> threads(static_cast<std::size_t>(wanted));
  pthread_attr_t small;
  ::pthread_attr_init(&small);
  ::pthread_attr_setstacksize(&small, std::size_t{1} << 16);
  int started = 0;
  while (started < wanted &&
         ::pthread_create(&threads[static_cast<std::size_t>(started)], &small, wait_for, &end) == 0)
    ++started;
  ::pthread_attr_destroy(&small);
  end.count_down();
  for (int i = 0; i < started; ++i) ::pthread_join(threads[static_cast<std::size_t>(i)], nullptr);
  return started;
}

void require_threads(int number, const std::string& who) {
  auto started = count_startable_threads(number);
  if (started == number) return;
  throw std::runtime_error(who + " needs " + std::to_string(number) +
                           " threads, and the system refused all but " + std::to_string(started) + ": " +
                           describe(read_thread_limits()));
}

}  // namespace troupe
