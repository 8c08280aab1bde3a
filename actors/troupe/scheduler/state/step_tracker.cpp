#include "troupe/scheduler/state/step_tracker.hpp"

#include <algorithm>

namespace troupe::actors::scheduler {
namespace {

constexpr double seconds_per_ns = 1e-9;

}  // namespace

void sampled_median::add(double value) {
  if (num_seen_++ % stride_ != 0) return;
  if (kept_.size() == max_kept) {
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize(max_kept / 2);
    stride_ *= 2;
  }
  // If the stride has just doubled, this value's index, max_kept times the old stride, is a multiple of the
  // new one too.
  kept_.push_back(value);
}

double sampled_median::median() const {
  if (kept_.empty()) return 0;
  auto values = kept_;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::vector<finished_step> step_tracker::add(const messages::step_done& report) {
  auto& entry = open_[report.step];
  entry.metrics[report.device] = report.metrics;
  if (entry.begin_ns == 0 || (report.first_begin_ns != 0 && report.first_begin_ns < entry.begin_ns))
    entry.begin_ns = report.first_begin_ns;
  entry.end_ns = std::max(entry.end_ns, report.last_end_ns);
  entry.busy_ns += report.busy_ns;
  entry.busy_of_device_ns[report.device] = report.busy_ns;
  entry.copy_ns = std::max(entry.copy_ns, report.copy_ns);
  peak_ = std::max(peak_, report.peak_activations);
  done_.at(report.device) = report.step + 1;

  std::vector<finished_step> finished;
  for (auto all = *std::ranges::min_element(done_); complete_ < all; ++complete_) {
    auto gathered = open_.extract(complete_).mapped();
    auto& step = finished.emplace_back(gathered.sums);
    step.step = complete_;
    for (const auto& [device, metrics] : gathered.metrics) {
      step.metrics += metrics;
      step.device_metrics.push_back(metrics);
    }
    step.span_s = static_cast<double>(gathered.end_ns - gathered.begin_ns) * seconds_per_ns;
    step.busy_s = static_cast<double>(gathered.busy_ns) * seconds_per_ns / static_cast<double>(done_.size());
    step.copy_s = static_cast<double>(gathered.copy_ns) * seconds_per_ns;
    for (const auto& [device, busy_ns] : gathered.busy_of_device_ns)
      step.device_busy_s.push_back(static_cast<double>(busy_ns) * seconds_per_ns);
    spans_.add(step.span_s);
    busies_.add(step.busy_s);
    if (step.span_s > 0) bubbles_.add(1 - step.busy_s / step.span_s);
  }
  return finished;
}

job::step_timing step_tracker::timing() const {
  return {spans_.median(), busies_.median(), bubbles_.median(), peak_};
}

}  // namespace troupe::actors::scheduler
