#include "troupe/inspector/views/job_view.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::inspector {
namespace {

double per_second(std::uint64_t before, std::uint64_t after, double seconds) {
  return after < before || seconds <= 0 ? 0 : static_cast<double>(after - before) / seconds;
}

}  // namespace

std::uint64_t steps_of_run(const messages::scheduler_report& report) {
  return report.job ? static_cast<std::uint64_t>(report.job->training.flush_every) : 1;
}

void set_rates(process_view& newest, const messages::process_report& before, double seconds) {
  const auto& report = newest.report;
  auto rate = [&](std::uint64_t then, std::uint64_t now) { return per_second(then, now, seconds); };
  newest.bytes_sent_per_s = rate(before.tensor_bytes_sent, report.tensor_bytes_sent);
  newest.bytes_received_per_s = rate(before.tensor_bytes_received, report.tensor_bytes_received);
  newest.tensors_sent_per_s = rate(before.tensors_sent, report.tensors_sent);
  newest.tensors_received_per_s = rate(before.tensors_received, report.tensors_received);
  newest.cores_waited_for = rate(before.core_wait_ns, report.core_wait_ns) / 1e9;
  std::map<int, transport::peer_statistics> earlier;
  for (const auto& peer : before.peers) earlier[peer.rank] = peer.counted;
  for (const auto& peer : report.peers) {
    const auto &then = earlier[peer.rank], &now = peer.counted;
    newest.sent_to[peer.rank] = {rate(then.tensor_bytes_sent, now.tensor_bytes_sent),
                                 rate(then.tensors_sent, now.tensors_sent),
                                 rate(then.frames_sent, now.frames_sent)};
  }
}

void metrics_history::add(const messages::recent_step& step) {
  std::lock_guard lock(mutex_);
  while (!steps_.empty() && steps_.back().step >= step.step) steps_.pop_back();
  steps_.push_back(step);
  if (steps_.size() > max_kept) steps_.pop_front();
}

void metrics_history::add_missed(std::uint64_t count) {
  std::lock_guard lock(mutex_);
  missed_ += count;
}

metrics_history::piece metrics_history::after(std::uint64_t step, std::size_t most) const {
  std::lock_guard lock(mutex_);
  piece found;
  found.missed = missed_;
  if (!steps_.empty()) found.oldest = steps_.front().step;
  auto first = std::ranges::upper_bound(steps_, step, {}, &messages::recent_step::step);
  auto count = std::min(most, static_cast<std::size_t>(steps_.end() - first));
  found.steps.assign(first, first + static_cast<std::ptrdiff_t>(count));
  return found;
}

std::optional<messages::recent_step> metrics_history::newest() const {
  std::lock_guard lock(mutex_);
  return steps_.empty() ? std::nullopt : std::optional(steps_.back());
}

double metrics_history::rate(std::size_t num_steps) const {
  std::lock_guard lock(mutex_);
  auto count = std::min(num_steps, steps_.size());
  if (count < 2) return 0;
  double seconds = 0;
  for (auto at = steps_.size() - count + 1; at < steps_.size(); ++at) seconds += steps_[at].step_s;
  return seconds > 0 ? static_cast<double>(count - 1) / seconds : 0;
}

bool has_gone_quiet(double silent_s, double usual_s) { return silent_s > std::max(2.0, 4 * usual_s); }

double metrics_history::rate_at(std::int64_t now_ms) const {
  auto pace = rate(steps_of_rate);
  std::lock_guard lock(mutex_);
  if (pace <= 0) return 0;
  auto count = std::min(steps_of_rate, steps_.size());
  std::vector<double> lengths;
  for (auto at = steps_.size() - count; at < steps_.size(); ++at)
    lengths.push_back(std::max(steps_[at].step_s, steps_[at].span_s));
  // One step that a pause or a recovery has lengthened is not usual.
  auto usual = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::ranges::nth_element(lengths, usual);
  auto silent_s = static_cast<double>(now_ms - steps_.back().at_ms) / 1000;
  return has_gone_quiet(silent_s, *usual) ? 0 : pace;
}

double metrics_history::slowest_s(std::size_t num_steps) const {
  std::lock_guard lock(mutex_);
  double slowest = 0;
  auto first = steps_.size() - std::min(num_steps, steps_.size());
  for (auto at = first; at < steps_.size(); ++at)
    slowest = std::max(slowest, std::max(steps_[at].span_s, steps_[at].busy_s + steps_[at].copy_s));
  return slowest;
}

void inspected_job::set_job_id(const std::string& id) {
  std::lock_guard lock(mutex_);
  job_id_ = id;
}

std::string inspected_job::job_id() const {
  std::lock_guard lock(mutex_);
  return job_id_;
}

void inspected_job::publish(job_view view) {
  auto made = std::make_shared<const job_view>(std::move(view));
  std::lock_guard lock(mutex_);
  view_.swap(made);
}

std::shared_ptr<const job_view> inspected_job::view() const {
  std::lock_guard lock(mutex_);
  return view_;
}

}  // namespace troupe::actors::inspector
