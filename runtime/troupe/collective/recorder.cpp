#include "troupe/collective/recorder.hpp"

#include <array>
#include <cstdio>

namespace troupe {
namespace {

std::string milliseconds_text(call::clock::duration time) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f ms", std::chrono::duration<double, std::milli>(time).count());
  return text.data();
}

}  // namespace

void call_recorder::on_begin(const call& what) {
  std::lock_guard lock(mutex_);
  if (entries_.size() == capacity_) entries_.pop_front();
  entries_.push_back({what.sequence, what.what.signature, what.what.peer, what.begun, {}});
}

void call_recorder::on_end(const call& what) {
  std::lock_guard lock(mutex_);
  for (auto each = entries_.rbegin(); each != entries_.rend(); ++each) {
    if (each->sequence != what.sequence || each->signature.kind != what.what.signature.kind ||
        each->peer != what.what.peer)
      continue;
    each->ended = what.ended;
    each->is = what.error ? entry::phase::failed : entry::phase::done;
    return;
  }
}

std::string call_recorder::describe(const entry& of) {
  auto text = '#' + std::to_string(of.sequence) + ' ' + to_string(of.signature);
  if (of.peer >= 0)
    text += (of.signature.kind == collective_kind::send ? " to member " : " from member ") +
            std::to_string(of.peer);
  return text;
}

std::string call_recorder::text() const {
  std::lock_guard lock(mutex_);
  std::string lines;
  for (const auto& each : entries_) {
    lines += describe(each);
    if (each.is == entry::phase::running)
      lines += " waiting for " + milliseconds_text(call::clock::now() - each.begun);
    else
      lines += (each.is == entry::phase::done ? " done in " : " failed after ") +
               milliseconds_text(each.ended - each.begun);
    lines += '\n';
  }
  return lines;
}

std::string call_recorder::last() const {
  std::lock_guard lock(mutex_);
  if (entries_.empty()) return "has called nothing yet";
  const auto& newest = entries_.back();
  return (newest.is == entry::phase::running ? "waits in " : "has finished ") + describe(newest);
}

}  // namespace troupe
