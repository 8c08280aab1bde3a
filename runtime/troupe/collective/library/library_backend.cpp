#include "troupe/collective/library/library_backend.hpp"

namespace troupe {

library_backend::library_backend(group_description group, store& rendezvous)
    : group_(std::move(group)), left_words_(group_, rendezvous) {}

void library_backend::enter(const collective_operation& what, std::uint64_t sequence) {
  sequence_ = sequence;
  signature_ = what.signature;
  is_inside_ = true;
}

void library_backend::leave() { is_inside_ = false; }

last_words library_backend::own_words() const {
  if (!is_inside_) return {.sequence = sequence_, .doing = doing_after(sequence_, signature_)};
  last_words words{.sequence = sequence_, .doing = doing_in(sequence_, signature_)};
  for (int i = 0; i < group_.size(); ++i)  // the library does not say for whom
    if (i != group_.member) words.awaited.push_back(i);
  return words;
}

std::vector<member_state> library_backend::examine(std::uint64_t) {
  auto own = own_words();
  own.gave_up = collective_failure::timed_out;
  left_words_.leave(own);
  break_off();  // so that the others come to leave theirs
  auto words = left_words_.read();
  require_nobody_gave_up(words);
  return post_mortem(group_).examine(words);
}

/// Who gave up says why; who waited as long as this member does not know either.
void library_backend::require_nobody_gave_up(const members_words& words) const {
  for (int i = 0; i < group_.size(); ++i) {
    const auto& its = words[static_cast<std::size_t>(i)];
    if (i != group_.member && its && its->gave_up && its->gave_up != collective_failure::timed_out)
      throw post_mortem(group_).given_up(i, *its);
  }
}

void library_backend::abort(const collective_error& why) noexcept {
  break_off();
  try {
    left_words_.leave(giving_up(own_words(), why));
  } catch (const std::exception&) {
    // The store is gone: the others will miss these words, and say so.
  }
}

void library_backend::require_agreement(const std::vector<call_signature>& by_member,
                                        std::uint64_t sequence) const {
  const auto& own = by_member[static_cast<std::size_t>(group_.member)];
  for (int i = 0; i < group_.size(); ++i) {
    const auto& theirs = by_member[static_cast<std::size_t>(i)];
    if (theirs != own) throw post_mortem(group_).mismatch({own, sequence}, i, theirs);
  }
}

void library_backend::require_message(const call_signature& theirs, const collective_operation& what,
                                      std::uint64_t sequence) const {
  if (theirs.type != what.signature.type || theirs.count != what.signature.count)
    throw post_mortem(group_).wrong_message({what.signature, sequence}, what.peer, theirs);
}

void library_backend::fail(const std::string& problem, const collective_operation& what,
                           std::uint64_t sequence) {
  left_words_.leave(own_words());
  break_off();
  throw post_mortem(group_).refused({what.signature, sequence}, problem, left_words_.read());
}

void library_backend::fail_here(const std::string& problem, const collective_operation& what,
                                std::uint64_t sequence) {
  break_off();
  throw post_mortem(group_).failed_here({what.signature, sequence}, problem);
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
