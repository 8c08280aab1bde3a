#include "bench/collective/rounds.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "bench/collective/collective_samples.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::bench {
namespace {

using clock = std::chrono::steady_clock;

double us_since(clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

/// How fast a core reads what another one has just written. Where a machine's (virtual) cores are moved about
/// this time jumps, and the time of everything between processes with it.
class core_probe {
 public:
  core_probe(const std::string& file, const measuring_member& self)
      : self_(self), mapped_bytes_(probe_bytes * static_cast<std::size_t>(self.size)), copy_(probe_bytes) {
    posix::unique_fd opened(
        static_cast<int>(check_posix(::open(file.c_str(), O_RDWR | O_CLOEXEC), "open " + file)));
    void* mapped = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
    if (mapped == MAP_FAILED) check_posix(-1, "map " + file);
    parts_ = static_cast<std::byte*>(mapped);
  }
  ~core_probe() { ::munmap(parts_, mapped_bytes_); }
  core_probe(const core_probe&) = delete;
  core_probe& operator=(const core_probe&) = delete;

  /// Each member writes its part, then copies the next one's: microseconds of its best copy, on the slowest.
  double measure() {
    constexpr int attempts = 8;
    double least = std::numeric_limits<double>::infinity();  // others on this core make one late, not all
    for (int i = 0; i < attempts; ++i) {
      std::fill_n(part(self_.rank), probe_bytes, static_cast<std::byte>(i));
      self_.barrier();
      auto begin = clock::now();
      std::memcpy(copy_.data(), part((self_.rank + 1) % self_.size), probe_bytes);
      least = std::min(least, us_since(begin));
      self_.barrier();  // before they write again
    }
    return self_.max(least);
  }

 private:
  std::byte* part(int member) const { return parts_ + static_cast<std::size_t>(member) * probe_bytes; }

  const measuring_member& self_;
  std::size_t mapped_bytes_;
  std::byte* parts_ = nullptr;
  std::vector<std::byte> copy_;
};

/// How many calls with so many bytes make one measurement.
int calls_for(std::size_t size_bytes) {
  constexpr std::size_t bytes_to_move = std::size_t{48} << 20;
  return static_cast<int>(std::clamp<std::size_t>(bytes_to_move / size_bytes, 2, 1000));
}

/// Without `fresh` the calls follow one another; otherwise each begins after a rewrite and a barrier, which
/// are not timed.
double time_calls(const measuring_member& self, const timed_call& timed, int count, bool fresh) {
  timed.call();
  self.barrier();
  double us = 0;
  if (fresh) {
    for (int i = 0; i < count; ++i) {
      timed.rewrite();
      self.barrier();
      auto begin = clock::now();
      timed.call();
      us += us_since(begin);
    }
  } else {
    auto begin = clock::now();
    for (int i = 0; i < count; ++i) timed.call();
    us = us_since(begin);
  }
  return self.max(us / count);
}

}  // namespace

std::int64_t num_elements_of(std::int64_t size_bytes, int num_members) {
  auto step = std::int64_t{4} * num_members;
  return (size_bytes + step - 1) / step * num_members;
}

void measure_rounds(const rounds_options& options, const measuring_member& self,
                    const std::function<calls_of_size(std::int64_t size_bytes)>& make_calls) {
  core_probe probe(options.probe_file, self);
  for (auto size : options.bytes) {
    auto calls = make_calls(size);
    auto time = [&](const timed_call& timed) {
      return time_calls(self, timed, std::min(calls_for(calls.size_bytes), timed.most_calls), options.fresh);
    };
    std::vector<collective_sample> samples(static_cast<std::size_t>(options.repeats));
    for (auto& sample : samples) {
      sample["probe_us"] = probe.measure();
      sample[calls.copy.name] = time(calls.copy);
      for (const auto& each : calls.operations)
        sample[each.name] = time(each) / (options.operation == "p2p" ? 2 : 1);
    }
    if (self.rank == 0)
      std::printf("%s\n", nlohmann::json{{"bytes", size}, {"samples", samples}}.dump().c_str());
  }
}

}  // namespace troupe::bench
