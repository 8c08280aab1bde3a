#include "bench/collective/collective_report.hpp"

#include <cstdio>
#include <iostream>

#include "bench/collective/collective_summary.hpp"
#include "bench/measure/two_speeds.hpp"

namespace troupe::bench {
namespace {

/// GB/s as nccl-tests defines it, from the median time.
double bus_bandwidth(const measured_group& group, std::int64_t size_bytes, const collective_summary& of) {
  double n = group.ranks;
  double factor = group.operation == "all_reduce" ? 2 * (n - 1) / n
                  : group.operation == "p2p"      ? 1
                                                  : (n - 1) / n;
  return factor * static_cast<double>(size_bytes) / (1e3 * of.own.median);
}

/// The time of the probe that parts the samples of all sizes.
std::optional<double> parting_of_all(const collective_report& report) {
  std::vector<double> probes;
  for (const auto& [size, samples] : report.samples)
    for (const auto& each : samples) probes.push_back(each.probe);
  return parting_of(std::move(probes));
}

std::string cell(const spread& of) { return of.count == 0 ? "-" : to_text(of, 1, 2); }

std::string times(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return value > 0 ? text : "-";
}

void print_row(const measured_group& group, std::int64_t size_bytes, const char* speed,
               const std::vector<collective_sample>& samples) {
  if (samples.empty()) return;
  auto of = collective_summary::of(samples);
  auto bus = of.own.count == 0 ? "-" : times(bus_bandwidth(group, size_bytes, of));
  std::printf("%-10lld %-5s %-27s %-27s %-27s %-8s %-18s %-18s %-30s %-9s %-30s %s\n",
              static_cast<long long>(size_bytes), speed, cell(of.own).c_str(), cell(of.foreign).c_str(),
              cell(of.memcpy).c_str(), bus.c_str(), cell(of.own_over_memcpy).c_str(),
              cell(of.foreign_over_memcpy).c_str(), cell(of.gloo).c_str(), times(of.gloo_over_own).c_str(),
              cell(of.open_mpi).c_str(), times(of.open_mpi_over_own).c_str());
}

nlohmann::ordered_json speeds_of(const std::vector<collective_sample>& samples,
                                 std::optional<double> parting) {
  if (!parting) return nullptr;
  auto of = [](const std::vector<collective_sample>& some) {
    return some.empty() ? nlohmann::ordered_json(nullptr) : collective_summary::of(some).json();
  };
  return {{"parted_at_us", *parting},
          {"fast", of(faster_than(*parting, samples))},
          {"slow", of(slower_than(*parting, samples))}};
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace

void collective_report::print_table() const {
  std::printf("machine    %s\n%s over %s, %d ranks%s%s\n", to_text(where).c_str(), group.operation.c_str(),
              group.backend.c_str(), group.ranks,
              fresh ? ", tensors rewritten by their owners before each call" : "",
              group.ranks > group.cores ? ": MORE RANKS THAN CORES, they wait for each other's turn" : "");
  std::printf("%-10s %-5s %-27s %-27s %-27s %-8s %-18s %-18s %-30s %-9s %-30s %s\n", "bytes", "speed",
              "own us", "foreign us", "memcpy us", "bus GB/s", "own/memcpy", "foreign/memcpy", "Gloo us",
              "Gloo/own", "Open MPI us", "Open MPI/own");
  auto parting = parting_of_all(*this);
  for (const auto& [size, of_size] : samples) {
    print_row(group, size, "all", of_size);
    if (!parting) continue;
    print_row(group, size, "fast", faster_than(*parting, of_size));
    print_row(group, size, "slow", slower_than(*parting, of_size));
  }
  if (parting)
    std::printf(
        "speeds     the machine ran at two: a core read 256 KiB of another's in less, or more, than %.1f "
        "us\n",
        *parting);
  if (!no_gloo.empty()) std::printf("Gloo       not measured: %s\n", no_gloo.c_str());
  if (!no_open_mpi.empty()) std::printf("Open MPI   not measured: %s\n", no_open_mpi.c_str());
}

void collective_report::print_json() const {
  auto parting = parting_of_all(*this);
  for (const auto& [size, of_size] : samples) {
    auto of = collective_summary::of(of_size);
    nlohmann::ordered_json line{{"bench", group.operation},
                                {"machine", to_json(where)},
                                {"ranks", group.ranks},
                                {"core_for_each_rank", group.cores >= group.ranks},
                                {"backend", group.backend},
                                {"fresh", fresh},
                                {"bytes", size},
                                {"bus_GBps", bus_bandwidth(group, size, of)}};
    line.update(of.json());
    line["speeds"] = speeds_of(of_size, parting);
    line["no_gloo"] = text_or_null(no_gloo);
    line["no_open_mpi"] = text_or_null(no_open_mpi);
    std::cout << line.dump() << std::endl;
  }
}

}  // namespace troupe::bench
