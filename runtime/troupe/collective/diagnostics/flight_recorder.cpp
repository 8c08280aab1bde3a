#include "troupe/collective/diagnostics/flight_recorder.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace troupe::collective {
namespace {

std::string milliseconds_text(call::clock::duration time) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f ms", std::chrono::duration<double, std::milli>(time).count());
  return text.data();
}

}  // namespace

flight_recorder::entry& flight_recorder::add(const call& what) {
  auto& added = entries_[next_];
  if (++next_ == entries_.size()) next_ = 0;
  if (num_kept_ < entries_.size()) ++num_kept_;
  added.sequence = what.sequence;
  added.signature = what.what.signature;
  added.peer = what.what.peer;
  added.begun = what.begun;
  added.is = entry::phase::running;
  return added;
}

void flight_recorder::on_wait(const call& what) {
  std::lock_guard lock(mutex_);
  add(what);
}

void flight_recorder::on_end(const call& what) {
  std::lock_guard lock(mutex_);
  auto* known = what.has_waited ? find(what) : &add(what);
  if (!known) return;
  known->ended = what.ended;
  known->is = what.error ? entry::phase::failed : entry::phase::done;
}

/// Null if it has been forgotten.
flight_recorder::entry* flight_recorder::find(const call& what) {
  for (std::size_t age = 0; age < num_kept_; ++age) {
    auto& each = entries_[place_of(age)];
    if (each.sequence == what.sequence && each.signature.kind == what.what.signature.kind &&
        each.peer == what.what.peer)
      return &each;
  }
  return nullptr;
}

std::string flight_recorder::describe(const entry& recorded) const {
  auto text = '#' + std::to_string(recorded.sequence) + ' ' + to_string(recorded.signature);
  if (recorded.peer >= 0)
    text += (recorded.signature.kind == collective_kind::send ? " to rank " : " from rank ") +
            to_string(ranks_.at(static_cast<std::size_t>(recorded.peer)));
  return text;
}

std::string flight_recorder::outcome(const entry& recorded) {
  if (recorded.is == entry::phase::running)
    return "waiting for " + milliseconds_text(call::clock::now() - recorded.begun);
  std::string is = recorded.is == entry::phase::done ? "done" : "failed";
  if (recorded.ended == recorded.begun) return is + " at once";
  return is + (recorded.is == entry::phase::done ? " in " : " after ") +
         milliseconds_text(recorded.ended - recorded.begun);
}

collective_position flight_recorder::position() const {
  std::lock_guard lock(mutex_);
  auto seconds = [](call::clock::duration time) { return std::chrono::duration<double>(time).count(); };
  collective_position found;
  for (std::size_t age = 0; age < num_kept_; ++age) {
    const auto& one = newest(age);
    if (one.peer >= 0) continue;
    bool is_running = one.is == entry::phase::running;
    if (!is_running) found.longest_s = std::max(found.longest_s, seconds(one.ended - one.begun));
    if (found.sequence != 0) continue;
    found.sequence = one.sequence;
    found.call = to_string(one.signature);
    found.is_in_call = is_running;
    if (is_running) found.for_s = seconds(call::clock::now() - one.begun);
  }
  return found;
}

std::string flight_recorder::text() const {
  std::lock_guard lock(mutex_);
  std::string lines;
  for (auto age = num_kept_; age-- > 0;)
    lines += (lines.empty() ? "" : "\n") + describe(newest(age)) + ' ' + outcome(newest(age));
  return lines;
}

}  // namespace troupe::collective
