#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <fstream>

#include "examine.hpp"

namespace troupe::doctor {
namespace {

constexpr auto mebibyte = std::uint64_t{1} << 20;

std::string in_mebibytes(std::uint64_t size_bytes) { return std::to_string(size_bytes / mebibyte) + " MiB"; }

/// The text after "`key`:" in a file of such lines; empty if there is none.
std::string field_of(const std::filesystem::path& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    auto colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    auto value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return {};
}

finding system_name() {
  utsname name{};
  ::uname(&name);
  std::string value = std::string(name.sysname) + " " + name.release + " " + name.machine;
  return {"machine", "system", verdict::ok, value, ""};
}

finding processor() {
  auto model = field_of("/proc/cpuinfo", "model name");
  return {"machine", "processor", verdict::ok, model.empty() ? "unknown model" : model, ""};
}

finding instruction_sets() {
  std::string value;
  auto add = [&value](bool supported, const char* name) {
    if (supported) value += (value.empty() ? "" : ", ") + std::string(name);
  };
#ifdef __x86_64__
  add(__builtin_cpu_supports("sse4.1"), "sse4.1");
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
#endif
  return {"machine", "instruction sets", verdict::ok, value.empty() ? "none known" : value, ""};
}

finding cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  // Fails on machines with more processors than the set holds.
  auto count = ::sched_getaffinity(0, sizeof(mine), &mine) == 0 ? CPU_COUNT(&mine) : CPU_SETSIZE;
  if (count >= 4) return {"machine", "cores", verdict::ok, std::to_string(count), ""};
  return {"machine", "cores", verdict::ok, std::to_string(count) + "; the demo's four workers share them",
          ""};
}

finding memory() {
  auto available = field_of("/proc/meminfo", "MemAvailable");  // "12345 kB"
  auto size_bytes = available.empty() ? 0 : std::stoull(available) * 1024;
  auto value = in_mebibytes(size_bytes) + " available";
  if (size_bytes >= 1024 * mebibyte) return {"machine", "memory", verdict::ok, value, ""};
  return {"machine", "memory", verdict::warning, value + "; the demo's four workers need 1024 MiB",
          "stop other programs, or give this machine more memory"};
}

finding shared_memory_in(const std::filesystem::path& folder) {
  struct statvfs filesystem {};
  if (::statvfs(folder.c_str(), &filesystem) != 0)
    return {"machine", "shared memory", verdict::warning,
            folder.string() + " is missing; tensors are sent over other transports",
            "mount -t tmpfs -o size=1G tmpfs " + folder.string()};
  auto free_bytes = std::uint64_t{filesystem.f_bavail} * filesystem.f_frsize;
  auto value = in_mebibytes(free_bytes) + " free in " + folder.string();
  if (free_bytes >= 256 * mebibyte) return {"machine", "shared memory", verdict::ok, value, ""};
  return {"machine", "shared memory", verdict::warning, value + "; 256 MiB or more is better",
          "mount -o remount,size=1G " + folder.string() + " (in a container: start it with --shm-size=1g)"};
}

std::uint64_t limit_of(decltype(RLIMIT_NOFILE) what) {
  rlimit limit{};
  return ::getrlimit(what, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

bool has_infiniband() {
  std::error_code ignored;
  const std::filesystem::path folder = "/sys/class/infiniband";
  return std::filesystem::is_directory(folder, ignored) && !std::filesystem::is_empty(folder, ignored);
}

}  // namespace

finding open_files(std::uint64_t limit) {
  auto value = limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit);
  if (limit >= 1024) return {"machine", "open files", verdict::ok, value, ""};
  return {"machine", "open files", verdict::warning, value + " per process; 1024 or more is better",
          "ulimit -n 1024"};
}

finding locked_memory(std::uint64_t limit_bytes, bool infiniband) {
  auto value = limit_bytes == RLIM_INFINITY ? "unlimited" : in_mebibytes(limit_bytes);
  if (!infiniband || limit_bytes == RLIM_INFINITY)
    return {"machine", "locked memory", verdict::ok, value, ""};
  return {"machine", "locked memory", verdict::warning, value + "; InfiniBand needs it unlimited",
          "ulimit -l unlimited"};
}

findings examine_machine(const std::filesystem::path& shared_memory) {
  return {system_name(),
          processor(),
          instruction_sets(),
          cores(),
          memory(),
          shared_memory_in(shared_memory),
          open_files(limit_of(RLIMIT_NOFILE)),
          locked_memory(limit_of(RLIMIT_MEMLOCK), has_infiniband())};
}

}  // namespace troupe::doctor
