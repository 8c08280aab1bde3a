#include "troupe/cluster/membership_state.hpp"

#include <algorithm>
#include <cstdio>

#include "troupe/error/errors.hpp"

namespace troupe::cluster {
namespace {

/// For a generation. Members say every second that they still compute, so this is several of these.
constexpr std::chrono::milliseconds least_time_to_stop = std::chrono::seconds(5);

std::string name(int rank) { return "rank " + std::to_string(rank); }

/// "1.5 s"; below a second "203 ms"
std::string text_of(std::chrono::steady_clock::duration time) {
  using std::chrono::milliseconds;
  if (time < std::chrono::seconds(1))
    return std::to_string(std::chrono::ceil<milliseconds>(time).count()) + " ms";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

void append(membership_outputs& to, membership_outputs more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

membership_state::membership_state(const membership_rules& rules, time_point now)
    : rules_(rules), last_tick_(now) {
  if (rules.world_size < 1)
    throw_invalid("membership_state", "a world size of at least 1", std::to_string(rules.world_size));
  slots_.resize(rules.world_size);
  for (auto& slot : slots_) slot.awaited_since = now;
}

std::optional<std::string> membership_state::refusal(int rank, std::uint32_t incarnation) const {
  if (ended_) return "the job has ended";
  if (rank < 0 || rank >= rules_.world_size)
    return name(rank) + " does not exist in a job of " + std::to_string(rules_.world_size) + " processes";
  const auto& slot = slots_[rank];
  if (incarnation < slot.least_incarnation)
    return name(rank) + " was lost and replaced: expected incarnation " +
           std::to_string(slot.least_incarnation) + " or later, got " + std::to_string(incarnation);
  if (slot.state == status::joined)
    return name(rank) + " is taken by process " + std::to_string(slot.self.pid) + " on " + slot.self.host;
  if (slot.state == status::left) return name(rank) + " has finished and left the job";
  if (over_) return "the job is done, " + name(rank) + " is not needed any more";
  return {};
}

bool membership_state::is_member(int rank, std::uint32_t incarnation) const {
  if (rank < 0 || rank >= rules_.world_size) return false;
  return slots_[rank].state == status::joined && slots_[rank].self.incarnation == incarnation;
}

int membership_state::num_present() const {
  return static_cast<int>(std::ranges::count(slots_, status::joined, &slot::state));
}

std::optional<int> membership_state::first_in(status state) const {
  auto found = std::ranges::find(slots_, state, &slot::state);
  if (found == slots_.end()) return {};
  return static_cast<int>(found - slots_.begin());
}

membership_outputs membership_state::joined(const member& self, time_point now) {
  if (auto reason = refusal(self.rank, self.incarnation))
    throw_invalid("membership_state::joined", "a free rank", *reason);
  if (auto gone = first_in(status::gone))
    return failed(name(*gone) + " ended with exit code 0 without joining the job, which the others wait for");
  if (auto other = first_in(status::joined); other && slots_[*other].self.numeric_class != self.numeric_class)
    return failed(name(self.rank) + " computes as '" + self.numeric_class + "' and " + name(*other) +
                  " as '" + slots_[*other].self.numeric_class +
                  "', so their results would differ. Start all processes with one version of Troupe, and on "
                  "GPUs of one "
                  "model with the same libraries");
  slots_[self.rank] = slot{.state = status::joined,
                           .least_incarnation = self.incarnation,
                           .awaited_since = {},
                           .self = self,
                           .heard = now,
                           .acknowledged = true,
                           .stopping_since = now,
                           .connected = true,
                           .exited = false,
                           .suspected_at = {},
                           .failing_since = {},
                           .asked_to_stop = 0};
  return complete_view(now);
}

membership_outputs membership_state::still_computing(int rank, std::uint64_t generation, time_point now) {
  if (generation == generation_) slots_.at(rank).stopping_since = now;
  return {};
}

membership_outputs membership_state::quiesced(int rank, std::uint64_t generation,
                                              const transport::process_address& address, time_point now) {
  auto& slot = slots_.at(rank);
  if (ended_ || over_ || !forming_ || generation != generation_ || slot.state != status::joined) return {};
  slot.acknowledged = true;
  slot.self.address = address;
  recovery_.acknowledged(now);
  return complete_view(now);
}

membership_outputs membership_state::complete_view(time_point now) {
  auto ready = [](const slot& s) { return s.state == status::joined && s.acknowledged && !s.suspected_at; };
  if (!forming_ || !std::ranges::all_of(slots_, ready)) return {};
  forming_ = false;
  had_view_ = true;
  losses_.clear();
  recovery_.viewed(now);
  membership_view view{generation_, {}};
  for (const auto& slot : slots_) view.members.push_back(slot.self);
  membership_outputs outputs{send_view{std::move(view)}};
  if (stop_signal_) outputs.push_back(send_stop{stop_signal_});
  return outputs;
}

membership_outputs membership_state::raise(const member_loss& loss, time_point now) {
  ++generation_;
  forming_ = true;
  losses_.push_back(loss);
  recovery_.fenced(generation_, now);
  send_fence fence{generation_, losses_, {}};
  for (auto& slot : slots_) {
    slot.acknowledged = false;
    slot.stopping_since = now;
    if (slot.state == status::joined && !slot.suspected_at) fence.to.push_back(slot.self.rank);
  }
  if (fence.to.empty()) return {};
  return {std::move(fence)};
}

membership_outputs membership_state::generation_requested(std::uint64_t current, const std::string& cause,
                                                          time_point now) {
  if (ended_ || over_ || current != generation_) return {};
  member_loss loss{-1, cause};
  if (had_view_) recovery_.begin(loss, now, now);
  return raise(loss, now);
}

membership_outputs membership_state::suspected(int rank, std::uint32_t incarnation, const std::string& cause,
                                               time_point now) {
  if (ended_ || !is_member(rank, incarnation) || is_failing(rank)) return {};
  return suspect(rank, cause, now);
}

membership_outputs membership_state::suspect(int rank, const std::string& cause, time_point now) {
  auto& slot = slots_[rank];
  if (!rules_.replaces_lost_members) return lost_for_good(rank, cause);
  if (slot.suspected_at) return {};
  slot.suspected_at = now;
  return {kill_process{rank, slot.self.incarnation, cause}};
}

membership_outputs membership_state::phase_reached(std::uint64_t generation, recovery_phase phase,
                                                   time_point now) {
  if (ended_ || forming_ || generation != generation_) return {};
  auto report = recovery_.reached(phase, now);
  if (!report) return {};
  return {send_recovered{*report}};
}

membership_outputs membership_state::left(int rank, time_point) {
  auto& slot = slots_.at(rank);
  if (ended_ || slot.state != status::joined) return {};
  slot.state = status::left;
  if (over_) return {};
  over_ = true;
  return {send_done{}};
}

membership_outputs membership_state::connection_lost(int rank, time_point) {
  auto& slot = slots_.at(rank);
  if (ended_ || slot.state != status::joined) return {};
  if (!rules_.replaces_lost_members)
    return lost_for_good(rank, "its connection closed, so its process has ended");
  slot.connected = false;
  if (slot.exited) return exited_without_leaving(rank);
  return {};
}

membership_outputs membership_state::process_lost(int rank, const std::string& cause, time_point detected,
                                                  std::optional<time_point> died, time_point now) {
  auto& slot = slots_.at(rank);
  if (ended_ || slot.state == status::left) return {};
  if (over_) return gone(rank);
  if (!rules_.replaces_lost_members) return lost_for_good(rank, cause);
  if (slot.suspected_at && *slot.suspected_at < detected) {
    detected = *slot.suspected_at;
    if (!died) died = slot.heard;
  }
  member_loss loss{rank, cause};
  if (had_view_) recovery_.begin(loss, died.value_or(detected), detected);
  slot.least_incarnation += 1;
  slot.state = status::awaited;
  slot.awaited_since = now;
  slot.suspected_at.reset();
  return raise(loss, now);
}

membership_outputs membership_state::process_exited(int rank, time_point) {
  auto& slot = slots_.at(rank);
  if (ended_ || slot.state == status::left) return {};
  if (slot.state != status::joined) {
    slot.state = status::gone;
    if (over_) return {};
    if (!had_view_ && num_present() == 0) return {};
    return failed(name(rank) + " ended with exit code 0 without joining the job, which the others wait for");
  }
  slot.exited = true;
  return slot.connected ? membership_outputs() : exited_without_leaving(rank);
}

membership_outputs membership_state::gone(int rank) {
  slots_[rank].state = status::gone;
  return {};
}

membership_outputs membership_state::exited_without_leaving(int rank) {
  if (over_) return gone(rank);
  return failed(name(rank) + " ended with exit code 0 in the middle of the job, without leaving it");
}

membership_outputs membership_state::lost_for_good(int rank, const std::string& cause) {
  if (over_) return gone(rank);
  return failed(name(rank) + " was lost (" + cause +
                ") and no launcher can restart it. If the job has a snapshot (--snapshot-dir), --resume "
                "continues from it; "
                "`troupe launch` restarts lost processes by itself");
}

membership_outputs membership_state::failed(const std::string& cause, failure_kind kind) {
  if (ended_ || over_) return {};
  ended_ = true;
  return {end_job{.cause = cause, .signal = 0, .kind = kind}};
}

membership_outputs membership_state::stop(int signal) {
  if (ended_ || over_ || stop_signal_) return {};
  stop_signal_ = signal;
  if (!had_view_) return stopped("before it began");
  return {send_stop{signal}};
}

membership_outputs membership_state::stop_asked(int rank, int signal) {
  slots_.at(rank).asked_to_stop = signal;
  // Before the job has begun, those that have not joined yet may come without a signal. Later the state may
  // be with those that were asked alone.
  auto was_asked = [this](const slot& s) {
    return s.asked_to_stop || (s.state != status::joined && had_view_);
  };
  if (rules_.replaces_lost_members && !std::ranges::all_of(slots_, was_asked)) return {};
  return stop(signal);
}

membership_outputs membership_state::stopped(const std::string& summary) {
  if (ended_ || over_ || !stop_signal_) return {};
  ended_ = true;
  return {end_job{.cause = summary, .signal = stop_signal_, .kind = failure_kind::error}};
}

bool membership_state::hears_of_stop(int rank) const {
  const auto& slot = slots_.at(rank);
  return slot.state == status::joined || (slot.state == status::awaited && had_view_);
}

void membership_state::failing(int rank, time_point now) {
  auto& slot = slots_.at(rank);
  if (!slot.failing_since) slot.failing_since = now;
}

membership_outputs membership_state::tick(time_point now) {
  if (ended_) return {};
  auto since_last = now - last_tick_;
  bool slept = since_last > rules_.suspect_after / 2;
  last_tick_ = now;
  if (slept)
    for (auto& each : slots_)
      for (auto* since : {&each.awaited_since, &each.stopping_since})
        *since = std::min(now, *since + since_last);
  auto outputs = over_ ? membership_outputs() : check_joined_in_time(now);
  for (int rank = 0; rank < rules_.world_size && !ended_; ++rank) {
    if (slots_[rank].state != status::joined) continue;
    if (slept) slots_[rank].heard = std::max(slots_[rank].heard, now);
    append(outputs, check_alive(rank, now));
  }
  return outputs;
}

membership_outputs membership_state::check_joined_in_time(time_point now) {
  auto late = [&](const slot& s) {
    return s.state == status::awaited && now - s.awaited_since >= rules_.join_timeout;
  };
  if (std::ranges::none_of(slots_, late)) return {};
  auto is_replacement = [this](const slot& s) {
    return rules_.replaces_lost_members && s.least_incarnation > 0;
  };
  if (std::ranges::all_of(slots_, [&](const slot& s) { return !late(s) || is_replacement(s); })) {
    membership_outputs kills;
    for (int rank = 0; rank < rules_.world_size; ++rank)
      if (late(slots_[rank])) kills.push_back(kill_late_replacement(rank, now));
    return kills;
  }
  std::string missing;
  int count = 0;
  for (int rank = 0; rank < rules_.world_size; ++rank) {
    if (slots_[rank].state != status::awaited) continue;
    missing += (count++ ? ", " : "") + std::to_string(rank);
  }
  return failed((count == 1 ? "rank " : "ranks ") + missing + " of " + std::to_string(rules_.world_size) +
                " did not join the job within " + text_of(rules_.join_timeout) +
                ". See what they printed; a longer time is --join-timeout");
}

/// Of a process that hangs, or was stopped, before it joins; others of the job have a state to go on from.
/// Said again after the same time, until process_lost.
kill_process membership_state::kill_late_replacement(int rank, time_point now) {
  auto& slot = slots_[rank];
  slot.awaited_since = now;
  return {rank, slot.least_incarnation,
          "it replaces a lost process and did not join the job within " + text_of(rules_.join_timeout) +
              " (--join-timeout)"};
}

membership_outputs membership_state::check_alive(int rank, time_point now) {
  const auto& slot = slots_[rank];
  if (slot.failing_since) return check_dying(rank, now);
  auto silence = now - slot.heard;
  if (silence >= rules_.suspect_after) {
    if (slot.exited) return exited_without_leaving(rank);
    return suspect(rank, slot.connected ? "no heartbeat for " + text_of(silence) : "its connection broke",
                   now);
  }
  auto time_to_stop = std::max<std::chrono::milliseconds>(rules_.join_timeout, least_time_to_stop);
  if (forming_ && !over_ && !slot.acknowledged && now - slot.stopping_since >= time_to_stop)
    return suspect(
        rank,
        "it did not stop for generation " + std::to_string(generation_) + " within " + text_of(time_to_stop),
        now);
  return {};
}

/// A member that has reported a failure is suspected only after dying_time: it may send no heartbeats while
/// it ends.
membership_outputs membership_state::check_dying(int rank, time_point now) {
  if (now - *slots_[rank].failing_since < rules_.dying_time) return {};
  return suspect(rank, "it did not end within " + text_of(rules_.dying_time) + " of an error of its own",
                 now);
}

}  // namespace troupe::cluster
