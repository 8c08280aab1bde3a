#include "troupe/collective/library/library_backend.hpp"

#include <algorithm>

namespace troupe {

library_backend::library_backend(group_description group, store& rendezvous)
    : group_(group), post_mortem_(std::move(group), rendezvous) {}

void library_backend::enter(const collective_operation& what, std::uint64_t sequence) {
  sequence_ = sequence;
  signature_ = what.signature;
  is_inside_ = true;
}

void library_backend::leave() { is_inside_ = false; }

last_words library_backend::own_words() const {
  if (sequence_ == 0) return {0, "has called nothing yet"};
  return {sequence_, (is_inside_ ? "is in call " : "has finished call ") + std::to_string(sequence_) + ", " +
                         to_string(signature_)};
}

std::vector<member_state> library_backend::examine(std::uint64_t sequence) {
  auto own = own_words();
  own.gave_up = collective_failure::timed_out;
  post_mortem_.leave(own);
  break_off();  // so that the others come to leave theirs
  std::vector<member_state> states;
  auto words = post_mortem_.read();
  for (int i = 0; i < group_.size(); ++i) {
    const auto& its = words[static_cast<std::size_t>(i)];
    if (i == group_.member) continue;
    member_state state{i, its ? its->sequence : 0, its ? its->doing : "says nothing"};
    state.is_behind = !its || its->sequence < sequence;
    states.push_back(state);
  }
  return states;
}

void library_backend::abort(const collective_error& why) noexcept {
  break_off();
  auto own = own_words();
  own.gave_up = why.kind();
  own.ranks = why.ranks();
  own.cause = why.what();
  try {
    post_mortem_.leave(own);
  } catch (const std::exception&) {
    // The store is gone: the others will miss these words, and say so.
  }
}

void library_backend::require_agreement(const std::vector<call_signature>& by_member,
                                        std::uint64_t sequence) const {
  const auto& own = by_member[static_cast<std::size_t>(group_.member)];
  for (int i = 0; i < group_.size(); ++i) {
    const auto& theirs = by_member[static_cast<std::size_t>(i)];
    if (theirs == own) continue;
    int own_rank = rank_of(group_.member), other_rank = rank_of(i);
    throw collective_error(collective_failure::mismatch, group_.name, sequence,
                           {std::min(own_rank, other_rank), std::max(own_rank, other_rank)},
                           "call " + std::to_string(sequence) + " of group " + group_.name + " is " +
                               to_string(own) + " on rank " + std::to_string(own_rank) + " but " +
                               to_string(theirs) + " on rank " + std::to_string(other_rank) +
                               ": all members must make the same calls in the same order");
  }
}

void library_backend::require_message(const call_signature& theirs, const collective_operation& what,
                                      std::uint64_t sequence) const {
  if (theirs.type == what.signature.type && theirs.count == what.signature.count) return;
  auto rank = rank_of(what.peer);
  throw collective_error(collective_failure::mismatch, group_.name, sequence, {rank},
                         "message " + std::to_string(sequence) + " from rank " + std::to_string(rank) +
                             " in group " + group_.name + ": expected " + to_string(what.signature) +
                             ", got " + to_string(theirs));
}

void library_backend::fail(const std::string& problem, const collective_operation& what,
                           std::uint64_t sequence) {
  post_mortem_.leave(own_words());
  break_off();
  auto words = post_mortem_.read();
  auto kind = collective_failure::transport;
  std::vector<int> silent;
  auto message = to_string(what.signature) + ", call " + std::to_string(sequence) + " of group " +
                 group_.name + ", failed on rank " + std::to_string(rank_of(group_.member)) + ": " + problem;
  for (int i = 0; i < group_.size(); ++i) {
    const auto& its = words[static_cast<std::size_t>(i)];
    if (i == group_.member) continue;
    auto rank = "rank " + std::to_string(rank_of(i));
    if (its && its->gave_up && !its->cause.empty())
      throw collective_error(*its->gave_up, group_.name, sequence, its->ranks,
                             "group " + group_.name + ": " + rank + " gave up: " + its->cause);
    if (!its) silent.push_back(rank_of(i));
    if (its && its->gave_up) kind = *its->gave_up;
    message += "; " + rank + ' ' + (its ? its->doing : "says nothing");
  }
  if (kind == collective_failure::transport && !silent.empty()) kind = collective_failure::lost_member;
  throw collective_error(kind, group_.name, sequence, std::move(silent), message);
}

void library_backend::announce_sleep() {
  std::lock_guard lock(mutex_);
  woken_ = false;
}

void library_backend::sleep(std::chrono::microseconds at_most) {
  std::unique_lock lock(mutex_);
  awake_.wait_for(lock, std::min(at_most, patience()), [&] { return woken_; });
}

void library_backend::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  awake_.notify_all();
}

}  // namespace troupe
