#include "troupe/collective/diagnostics/profile.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

namespace troupe::collective {
namespace {

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  std::array<char, 256> text;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return made + '"';
}

constexpr double giga = 1e9;

}  // namespace

double bus_factor(collective_kind kind, int num_members) {
  auto others = static_cast<double>(num_members - 1) / num_members;
  switch (kind) {
    case collective_kind::all_reduce:
      return 2 * others;
    case collective_kind::reduce_scatter:
    case collective_kind::all_gather:
    case collective_kind::all_to_all:
    case collective_kind::gather:
    case collective_kind::scatter:
      return others;
    case collective_kind::broadcast:
    case collective_kind::reduce:
    case collective_kind::send:
    case collective_kind::receive:
      return 1;
    case collective_kind::barrier:
      break;
  }
  return 0;
}

std::int64_t profiled_bytes(const call_signature& signature) {
  return signature.kind == collective_kind::barrier
             ? 0
             : signature.count * static_cast<std::int64_t>(size_bytes(signature.type));
}

double profile_line::mean_s() const { return count == 0 ? 0 : active_s / static_cast<double>(count); }
double profile_line::algorithm_bandwidth() const { return active_s > 0 ? bytes / active_s : 0; }
double profile_line::bus_bandwidth(collective_kind kind) const {
  return num_members > 0 ? algorithm_bandwidth() * bus_factor(kind, num_members) : 0;
}
double profile_line::overlap() const { return active_s > 0 ? std::clamp(covered_s / active_s, 0.0, 1.0) : 0; }

void communication_profile::add_call(const profile_key& key, int num_members, std::int64_t bytes,
                                     duration active) {
  std::lock_guard lock(mutex_);
  auto& line = lines_[key];
  line.num_members = num_members;
  line.count += 1;
  line.bytes += static_cast<double>(bytes);
  line.active_s += active.count();
  line.covered_s += active.count();
}

void communication_profile::add_wait(const profile_key& key, duration waited, duration while_active) {
  std::lock_guard lock(mutex_);
  auto& line = lines_[key];
  line.exposed_s += waited.count();
  line.covered_s = std::max(0.0, line.covered_s - while_active.count());
}

std::map<profile_key, profile_line> communication_profile::lines() const {
  std::lock_guard lock(mutex_);
  return lines_;
}

std::string communication_profile::text(const std::string& title) const {
  auto all = lines();
  if (all.empty()) return {};
  std::size_t group_width = 5, algorithm_width = 9;
  for (const auto& [key, line] : all) {
    group_width = std::max(group_width, key.group.size());
    algorithm_width = std::max(algorithm_width, key.algorithm.size());
  }
  auto row = [&](const std::string& group, std::string_view operation, const std::string& algorithm) {
    return padded(group, group_width) + ' ' + padded(std::string(operation), 14) + ' ' +
           padded(algorithm, algorithm_width) + ' ';
  };
  auto made = title + '\n' + row("group", "operation", "algorithm") +
              "  n   calls        bytes   mean us  alg GB/s  bus GB/s  exposure ms  overlap\n";
  for (const auto& [key, line] : all)
    made += row(key.group, to_string(key.kind), key.algorithm) +
            formatted("%3d %7llu %12.0f %9.1f %9.3f %9.3f %11.2f %7.0f%%\n", line.num_members,
                      static_cast<unsigned long long>(line.count), line.bytes, line.mean_s() * 1e6,
                      line.algorithm_bandwidth() / giga, line.bus_bandwidth(key.kind) / giga,
                      line.exposed_s * 1e3, line.overlap() * 100);
  return made;
}

std::string communication_profile::json(world_rank rank) const {
  std::string made;
  for (const auto& [key, line] : lines()) {
    made += made.empty() ? "" : ",";
    made +=
        R"({"group":)" + quoted(key.group) + R"(,"operation":")" + std::string(to_string(key.kind)) +
        R"(","algorithm":)" + quoted(key.algorithm) +
        formatted(R"(,"members":%d,"calls":%llu,"bytes":%.0f,"mean_s":%.9g,"algorithm_bytes_per_s":%.9g,)"
                  R"("bus_bytes_per_s":%.9g,"exposed_s":%.9g,"overlap":%.6g})",
                  line.num_members, static_cast<unsigned long long>(line.count), line.bytes, line.mean_s(),
                  line.algorithm_bandwidth(), line.bus_bandwidth(key.kind), line.exposed_s, line.overlap());
  }
  return R"({"event":"communication","rank":)" + to_string(rank) + R"(,"lines":[)" + made + "]}\n";
}

}  // namespace troupe::collective
