#include "troupe/collective/libraries/library_backend.hpp"

#include <algorithm>

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"
#include "troupe/posix/wake_event.hpp"

namespace troupe::collective {

library_backend::library_backend(group_description group, store& keys)
    : group_(std::move(group)), report_store_(group_, keys) {}

void library_backend::enter(const collective_operation& what, std::uint64_t sequence) {
  sequence_ = sequence;
  signature_ = what.signature;
  is_in_call_ = true;
}

void library_backend::leave() { is_in_call_ = false; }

failure_report library_backend::own_report() const {
  if (!is_in_call_) return {.sequence = sequence_, .activity = text_after_call(sequence_, signature_)};
  failure_report report{.sequence = sequence_, .activity = text_in_call(sequence_, signature_)};
  for (int i = 0; i < group_.size(); ++i)  // the library does not say for which member
    if (i != group_.member) report.waits_for.push_back(i);
  return report;
}

std::vector<member_state> library_backend::examine(std::uint64_t sequence) {
  auto own = own_report();
  own.failure = collective_failure::timed_out;
  report_store_.put(own);
  close({collective_failure::timed_out,
         group_.name,
         sequence,
         {},
         "a call of group " + group_.name +
             " timed out"});  // ends the calls of the others, who then put theirs
  auto reports = report_store_.read_all();
  throw_if_aborted(reports);
  return failure_diagnosis(group_).member_states(reports);
}

/// A member that has aborted the group knows the cause. One that has timed out does not.
void library_backend::throw_if_aborted(const member_reports& reports) const {
  for (int i = 0; i < group_.size(); ++i) {
    const auto& report = reports[static_cast<std::size_t>(i)];
    if (i != group_.member && report && report->failure && report->failure != collective_failure::timed_out)
      throw failure_diagnosis(group_).aborted_by(i, *report);
  }
}

/// Puts the cause before it closes, which ends the calls of the others, who then read it.
void library_backend::abort(const collective_error& why) noexcept {
  try {
    report_store_.put(with_failure(own_report(), why));
  } catch (const std::exception&) {
    // The store cannot be reached. The others will report that this member has put nothing.
  }
  close(why);
}

void library_backend::require_agreement(const std::vector<call_signature>& by_member,
                                        std::uint64_t sequence) const {
  const auto& own = by_member[static_cast<std::size_t>(group_.member)];
  for (int i = 0; i < group_.size(); ++i) {
    const auto& theirs = by_member[static_cast<std::size_t>(i)];
    if (theirs != own) throw failure_diagnosis(group_).mismatch({own, sequence}, i, theirs);
  }
}

void library_backend::require_message(const call_signature& theirs, const collective_operation& what,
                                      std::uint64_t sequence) const {
  if (theirs.type != what.signature.type || theirs.count != what.signature.count)
    throw failure_diagnosis(group_).wrong_message({what.signature, sequence}, what.peer, theirs);
}

void library_backend::fail(const std::string& problem, const collective_operation& what,
                           std::uint64_t sequence) {
  report_store_.put(own_report());
  close(failure_diagnosis(group_).local_failure({what.signature, sequence}, problem));
  throw failure_diagnosis(group_).library_failure({what.signature, sequence}, problem,
                                                  report_store_.read_all());
}

void library_backend::fail_locally(const std::string& problem, const collective_operation& what,
                                   std::uint64_t sequence) {
  auto error = failure_diagnosis(group_).local_failure({what.signature, sequence}, problem);
  abort(error);
  throw error;
}

void library_backend::announce_sleep(int engine_event) {
  std::lock_guard lock(mutex_);
  woken_ = false;
  engine_event_ = engine_event;
}

bool library_backend::add_wake_sources(wake_sources& sources) {
  sources.at_most = std::min(sources.at_most, poll_interval());
  return true;
}

void library_backend::sleep(std::chrono::microseconds at_most) {
  std::unique_lock lock(mutex_);
  awake_.wait_for(lock, std::min(at_most, poll_interval()), [&] { return woken_; });
}

void library_backend::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  awake_.notify_all();
  if (engine_event_ != no_event) posix::wake_event::set(engine_event_);
}

}  // namespace troupe::collective
