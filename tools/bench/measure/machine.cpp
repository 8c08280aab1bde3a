#include "bench/measure/machine.hpp"

#include <sched.h>
#include <stdlib.h>

#include <cstdio>
#include <fstream>
#include <thread>

namespace troupe::bench {
namespace {

std::string processor_model() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown processor";
}

int usable_cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof mine, &mine) == 0) return CPU_COUNT(&mine);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

machine this_machine() {
  machine where{processor_model(), usable_cores(), 0};
  if (::getloadavg(&where.load, 1) != 1) where.load = -1;
  return where;
}

nlohmann::ordered_json to_json(const machine& where) {
  return {{"processor", where.processor}, {"cores", where.cores}, {"load_before", where.load}};
}

std::string to_text(const machine& where) {
  char load[64];
  std::snprintf(load, sizeof load, "load %.2f before", where.load);
  return std::to_string(where.cores) + (where.cores == 1 ? " core (" : " cores (") + where.processor + "), " +
         load;
}

}  // namespace troupe::bench
