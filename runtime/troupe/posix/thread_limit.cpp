#include "troupe/posix/thread_limit.hpp"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace troupe::posix {
namespace {

/// Other processes may start this many threads at the same time, as those of a large host that start
/// together.
constexpr std::uint64_t threads_of_others = 4096;

/// The number in a file; none without one, as where it says "max".
std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return {};
}

std::uint64_t difference(std::uint64_t limit, std::uint64_t used) { return limit - std::min(limit, used); }

void lower(std::optional<std::uint64_t>& value, std::uint64_t to) {
  value = std::min(value.value_or(to), to);
}

/// All threads of the system, the last number of "0.20 0.18 0.12 1/80 11206"; none: not known.
std::optional<std::uint64_t> threads_in(const std::filesystem::path& loadavg) {
  std::ifstream stream(loadavg);
  std::string load;
  std::uint64_t running = 0, all = 0;
  char slash = 0;
  if (stream >> load >> load >> load >> running >> slash >> all) return all;
  return {};
}

/// Of a group and those around it, the least: each of them limits the processes within.
void read_control_group(thread_limits& into, const std::filesystem::path& mount,
                        std::filesystem::path folder) {
  while (true) {
    auto place = mount / folder.relative_path();
    if (auto limit = number_in(place / "pids.max")) {
      if (!into.of_control_group || *limit < *into.of_control_group) {
        into.of_control_group = limit;
        into.control_group_file = place / "pids.max";
      }
      if (into.left) lower(into.left, difference(*limit, number_in(place / "pids.current").value_or(*limit)));
    }
    if (folder.relative_path().empty()) return;
    folder = folder.parent_path();
  }
}

std::optional<std::uint64_t> limit_kib(decltype(RLIMIT_AS) which) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur / 1024;
}

void* wait_for(void* end) {
  static_cast<std::latch*>(end)->wait();
  return nullptr;
}

}  // namespace

thread_limits read_thread_limits(const std::filesystem::path& proc,
                                 const std::filesystem::path& control_groups) {
  thread_limits limits;
  auto threads = threads_in(proc / "loadavg");
  auto of_system = number_in(proc / "sys/kernel/threads-max"), ids = number_in(proc / "sys/kernel/pid_max");
  if (threads && of_system && ids) limits.left = difference(std::min(*of_system, *ids), *threads);
  rlimit of_user{};
  if (::getrlimit(RLIMIT_NPROC, &of_user) == 0 && of_user.rlim_cur != RLIM_INFINITY) {
    limits.of_user = of_user.rlim_cur;
    if (limits.left) lower(limits.left, difference(of_user.rlim_cur, *threads));
  }
  limits.of_address_space = limit_kib(RLIMIT_AS);
  limits.of_data = limit_kib(RLIMIT_DATA);
  if (limits.of_address_space || limits.of_data) limits.left.reset();  // not known
  // Lines NUMBER:CONTROLLERS:PATH; version 2 has no controllers.
  std::ifstream stream(proc / "self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    auto path = line.substr(second + 1);
    if (controllers == ",,") read_control_group(limits, control_groups, path);
    if (controllers.find(",pids,") != std::string::npos)
      read_control_group(limits, control_groups / "pids", path);
  }
  return limits;
}

std::string describe(const thread_limits& limits) {
  std::string memory;
  if (limits.of_address_space)
    memory = "the address space of a process is limited to " + std::to_string(*limits.of_address_space) +
             " KiB (ulimit -v), in which threads reserve their stacks";
  if (limits.of_data)
    memory += (memory.empty() ? "" : ", ") + std::string("the memory of a process is limited to ") +
              std::to_string(*limits.of_data) + " KiB (ulimit -d)";
  std::string text;
  if (limits.of_user)
    text = "the user's limit of processes and threads is " + std::to_string(*limits.of_user) + " (ulimit -u)";
  if (limits.of_control_group)
    text += (text.empty() ? "" : ", ") + std::string("that of the control group is ") +
            std::to_string(*limits.of_control_group) + " (" + limits.control_group_file.string() + ")";
  if (!memory.empty())
    return memory + (text.empty() ? "" : "; ") + text +
           ". Raise them (ulimit -v unlimited, ulimit -d unlimited; h_vmem of a batch system)";
  if (text.empty()) text = "neither ulimit -u nor a control group's pids.max is set: memory may have run out";
  return text +
         ". Raise it (ulimit -u, --pids-limit of a container, TasksMax of a service), or run fewer processes";
}

int count_startable_threads(int wanted) {
  std::latch end(1);
  std::vector<pthread_t> threads(static_cast<std::size_t>(wanted));
  pthread_attr_t stack;
  ::pthread_attr_init(&stack);
  std::size_t size = std::size_t{1} << 16;
  if (limit_kib(RLIMIT_AS) || limit_kib(RLIMIT_DATA)) {
    ::pthread_attr_getstacksize(&stack, &size);
    size += size / 2;  // threads allocate, too
  }
  ::pthread_attr_setstacksize(&stack, size);
  int started = 0;
  while (started < wanted &&
         ::pthread_create(&threads[static_cast<std::size_t>(started)], &stack, wait_for, &end) == 0)
    ++started;
  ::pthread_attr_destroy(&stack);
  end.count_down();
  for (int i = 0; i < started; ++i) ::pthread_join(threads[static_cast<std::size_t>(i)], nullptr);
  return started;
}

void spare_address_space() {
  constexpr int most_arenas = 2;
  if (limit_kib(RLIMIT_AS)) ::mallopt(M_ARENA_MAX, most_arenas);
}

void require_threads(int number, const std::string& who) {
  // With half of it the smallest GPT is killed by SIGSEGV.
  constexpr std::uint64_t least_stack_kib = 128;
  if (auto stack = limit_kib(RLIMIT_STACK); stack && *stack < least_stack_kib)
    throw std::runtime_error(who + " needs stacks of at least " + std::to_string(least_stack_kib) +
                             " KiB for its threads, and they are limited to " + std::to_string(*stack) +
                             " KiB (ulimit -s). Raise it: ulimit -s 8192, as is usual");
  auto limits = read_thread_limits();
  // Each recovery would wait for the milliseconds that a try takes.
  if (limits.left && *limits.left >= threads_of_others + static_cast<std::uint64_t>(number)) return;
  auto started = count_startable_threads(number);
  if (started == number) return;
  throw std::runtime_error(who + " needs " + std::to_string(number) +
                           " threads, and the system refused all but " + std::to_string(started) + ": " +
                           describe(limits));
}

}  // namespace troupe::posix
