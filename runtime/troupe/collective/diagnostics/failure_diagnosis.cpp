#include "troupe/collective/diagnostics/failure_diagnosis.hpp"

#include <algorithm>
#include <set>

namespace troupe::collective {

std::vector<member_state> failure_diagnosis::member_states(const member_reports& reports) const {
  std::set<int> waited_for;
  for (const auto& each : reports)
    if (each) waited_for.insert(each->waits_for.begin(), each->waits_for.end());
  std::vector<member_state> states;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.member) continue;
    const auto& report = reports[static_cast<std::size_t>(i)];
    bool is_waiting = report && !report->waits_for.empty();
    states.push_back(
        {i, report ? report->activity : "has sent no report", waited_for.contains(i) && !is_waiting});
  }
  return states;
}

std::string failure_diagnosis::text_of(const failed_call& call) const {
  if (call.sequence == 0) return "group " + group_.name;
  return to_string(call.signature) + ", call " + std::to_string(call.sequence) + " of group " + group_.name;
}

collective_error failure_diagnosis::timed_out(const call& late, const std::vector<member_state>& states,
                                              const std::string& recent_calls) const {
  std::vector<world_rank> missing;
  std::string activities;
  for (const auto& state : states) {
    bool is_missed = late.what.peer >= 0 ? state.member == late.what.peer : state.is_behind;
    if (is_missed) missing.push_back(rank_of(state.member));
    activities += "; " + rank_text(state.member) + ' ' + state.activity;
  }
  return {collective_failure::timed_out, group_.name, late.sequence, std::move(missing),
          text_of({late.what.signature, late.sequence}) + ", did not end within " +
              std::to_string(late.options.timeout.count()) + " ms on " + rank_text(group_.member) +
              activities + ". Its last calls:\n" + recent_calls};
}

collective_error failure_diagnosis::cancelled(const failed_call& unwanted) const {
  return {collective_failure::cancelled,
          group_.name,
          unwanted.sequence,
          {},
          text_of(unwanted) + ", was cancelled on " + rank_text(group_.member)};
}

collective_error failure_diagnosis::aborted_by(member_index from, const failure_report& report) const {
  auto ranks = report.failed_ranks;
  if (ranks.empty()) ranks.push_back(rank_of(from));
  return {report.failure.value_or(collective_failure::transport), group_.name, report.sequence,
          std::move(ranks),
          "group " + group_.name + " was aborted by " + rank_text(from) + ": " + report.cause};
}

collective_error failure_diagnosis::lost(const failed_call& failed, member_index member,
                                         const std::string& how, const std::string& activity) const {
  return {collective_failure::lost_member,
          group_.name,
          failed.sequence,
          {rank_of(member)},
          text_of(failed) + ": " + how + "; it " + activity};
}

collective_error failure_diagnosis::mismatch(const failed_call& own, member_index other,
                                             const call_signature& theirs) const {
  auto [least, most] = std::minmax({rank_of(group_.member), rank_of(other)});
  return {collective_failure::mismatch,
          group_.name,
          own.sequence,
          {least, most},
          "call " + std::to_string(own.sequence) + " of group " + group_.name + " is " +
              to_string(own.signature) + " on " + rank_text(group_.member) + " but " + to_string(theirs) +
              " on " + rank_text(other) + ": all members must make the same calls in the same order"};
}

collective_error failure_diagnosis::wrong_message(const failed_call& expected, member_index from,
                                                  const call_signature& theirs) const {
  return {collective_failure::mismatch,
          group_.name,
          expected.sequence,
          {rank_of(from)},
          "message " + std::to_string(expected.sequence) + " from " + rank_text(from) + " in group " +
              group_.name + ": expected " + to_string(expected.signature) + ", got " + to_string(theirs)};
}

collective_error failure_diagnosis::local_failure(const failed_call& failed,
                                                  const std::string& problem) const {
  return {collective_failure::transport,
          group_.name,
          failed.sequence,
          {rank_of(group_.member)},
          text_of(failed) + ", failed on " + rank_text(group_.member) + ": " + problem};
}

collective_error failure_diagnosis::library_failure(const failed_call& failed, const std::string& problem,
                                                    const member_reports& reports) const {
  auto kind = collective_failure::transport;
  std::vector<world_rank> silent;
  std::string message = local_failure(failed, problem).what();
  for (int i = 0; i < group_.size(); ++i) {
    const auto& report = reports[static_cast<std::size_t>(i)];
    if (i == group_.member) continue;
    if (report && report->failure && !report->cause.empty()) return aborted_by(i, *report);
    if (!report) silent.push_back(rank_of(i));
    if (report && report->failure) kind = *report->failure;
    message += "; " + rank_text(i) + ' ' + (report ? report->activity : "has sent no report");
  }
  if (kind == collective_failure::transport && !silent.empty()) kind = collective_failure::lost_member;
  return {kind, group_.name, failed.sequence, std::move(silent), message};
}

}  // namespace troupe::collective
