#include "troupe/inspector/findings/step_pace.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::actors::inspector {
namespace {

double lower_quartile(std::vector<double> values) {
  auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::ranges::nth_element(values, at);
  return *at;
}

/// Of all but `left_out`.
std::vector<double> others(const std::vector<double>& values, std::size_t left_out) {
  auto rest = values;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(left_out));
  return rest;
}

double median(std::vector<double> values) {
  auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void step_pace::reset() { *this = {}; }

void step_pace::add(const messages::recent_step& step) {
  if (step.device_busy_s.size() < 2) return;
  bool is_of_another_kind =
      num_samples_ != step.num_samples ||
      (!steps_.empty() &&
       (steps_.back().device_busy_s.size() != step.device_busy_s.size() || steps_.back().step >= step.step));
  if (is_of_another_kind) reset();
  num_samples_ = step.num_samples;
  steps_.push_back(step);
  if (steps_.size() > most_kept) steps_.pop_front();
  ++num_new_;
  if (num_new_ < least_steps || num_new_ > steps_.size()) return;
  const auto& first = steps_[steps_.size() - num_new_];
  if (step.at_ms - first.at_ms < window_ms) return;
  keep_best(*newest());
  num_new_ = 0;
}

/// Windows of the past do not overlap, and a device that is at fault does not become its own measure: only
/// better ones count.
void step_pace::keep_best(const window& finished) {
  ++num_windows_;
  if (num_windows_ == 1) return;  // a program's first steps are slow
  if (best_s_.empty()) best_s_ = finished.busy_s;
  for (std::size_t device = 0; device < best_s_.size(); ++device)
    best_s_[device] = std::min(best_s_[device], finished.busy_s[device]);
}

std::optional<step_pace::window> step_pace::newest() const {
  if (steps_.size() < least_steps) return {};
  auto first = steps_.size() - least_steps;
  while (first > 0 && steps_.back().at_ms - steps_[first - 1].at_ms < window_ms) --first;
  window found{steps_[first].at_ms, steps_.back().at_ms, {}};
  for (std::size_t device = 0; device < steps_.back().device_busy_s.size(); ++device) {
    std::vector<double> values;
    for (auto at = first; at < steps_.size(); ++at) values.push_back(steps_[at].device_busy_s[device]);
    found.busy_s.push_back(lower_quartile(std::move(values)));
  }
  return found;
}

std::vector<pace_problem> step_pace::find() const {
  auto now = newest();
  if (!now || num_windows_ == 0) return {};
  // Before the second window there is no past: all is as it was.
  const auto& past_s = best_s_.empty() ? now->busy_s : best_s_;
  std::vector<double> changes;
  for (std::size_t device = 0; device < past_s.size(); ++device)
    changes.push_back(past_s[device] > 0 ? now->busy_s[device] / past_s[device] : 1);
  std::vector<pace_problem> found;
  for (std::size_t device = 0; device < past_s.size(); ++device) {
    auto busy_s = now->busy_s[device];
    if (busy_s < least_busy_s) continue;
    auto change_of_others = std::max(1.0, median(others(changes, device)));
    auto others_s = mean(others(now->busy_s, device));
    if (changes[device] >= straggles_from * change_of_others)
      found.push_back({device, true, busy_s, past_s[device], now->begin_ms});
    else if (busy_s >= unbalanced_from * others_s &&
             past_s[device] >= unbalanced_from * mean(others(past_s, device)))
      found.push_back({device, false, busy_s, others_s, now->begin_ms});
  }
  return found;
}

}  // namespace troupe::actors::inspector
