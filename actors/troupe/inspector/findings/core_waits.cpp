#include "troupe/inspector/findings/core_waits.hpp"

#include <algorithm>

namespace troupe::actors::inspector {
namespace {

constexpr double usual_s = 20;

double duration_s(std::int64_t first_ms, std::int64_t last_ms) {
  return static_cast<double>(last_ms - first_ms) / 1000;
}

}  // namespace

double core_waits::mean_between(const report& first, const report& last) {
  return static_cast<double>(last.total_ns - first.total_ns) / 1e9 / duration_s(first.at_ms, last.at_ms);
}

void core_waits::observe(const job_view& view) {
  for (const auto& [rank, shown] : view.processes) {
    auto& known = processes_[rank];
    if (known.incarnation != shown.report.incarnation) known = {shown.report.incarnation, {}, 0};
    auto& reports = known.reports;
    report next{shown.at_ms, shown.report.core_wait_ns};
    if (!reports.empty() && reports.back().at_ms >= next.at_ms) continue;
    if (!reports.empty()) {
      auto seconds = duration_s(reports.back().at_ms, next.at_ms);
      known.usual += (mean_between(reports.back(), next) - known.usual) * std::min(1.0, seconds / usual_s);
    }
    reports.push_back(next);
    if (reports.size() > most_kept) reports.pop_front();
  }
}

double core_waits::mean_since(int rank, std::int64_t since_ms) const {
  auto known = processes_.find(rank);
  if (known == processes_.end() || known->second.reports.size() < 2) return 0;
  const auto& reports = known->second.reports;
  auto after = std::ranges::upper_bound(reports, since_ms, {}, &report::at_ms);
  auto first = after == reports.begin() ? after : after - 1;
  if (first == reports.end() - 1) --first;
  const auto& last = reports.back();
  return mean_between(*first, last);
}

double core_waits::usual(int rank) const {
  auto known = processes_.find(rank);
  return known == processes_.end() ? 0 : known->second.usual;
}

}  // namespace troupe::actors::inspector
