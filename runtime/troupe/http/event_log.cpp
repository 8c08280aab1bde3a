#include "troupe/http/event_log.hpp"

#include <utility>

namespace troupe::http {
namespace {

std::string event_text(std::uint64_t id, std::string_view type, const std::string& data) {
  return "id: " + std::to_string(id) + "\nevent: " + std::string(type) + "\ndata: " + data + "\n\n";
}

}  // namespace

void event_log::append(std::string_view type, const std::string& data) {
  {
    std::lock_guard lock(mutex_);
    entry made{++newest_, event_text(newest_, type, data)};
    size_bytes_ += made.text.size();
    events_.push_back(std::move(made));
    while (events_.size() > 1 && (events_.size() > max_events_ || size_bytes_ > max_bytes_)) {
      size_bytes_ -= events_.front().text.size();
      events_.pop_front();
    }
  }
  std::lock_guard lock(calling_);
  if (call_) call_();
}

event_log::piece event_log::after(std::uint64_t id, std::size_t max_bytes) const {
  std::lock_guard lock(mutex_);
  piece next{{}, id};
  if (id > newest_) {
    next = {event_text(0, "restarted", "{}"), 0};
    id = 0;
  }
  if (events_.empty() || id == newest_) return next;
  auto oldest = events_.front().id;
  if (id + 1 < oldest) {
    next.last_id = oldest - 1;
    // A client that asks for the first time (0) has missed nothing that it was promised.
    if (id > 0)
      next.text += event_text(oldest - 1, "dropped", "{\"events\":" + std::to_string(oldest - 1 - id) + "}");
    id = oldest - 1;
  }
  for (auto at = static_cast<std::size_t>(id + 1 - oldest); at < events_.size(); ++at) {
    if (!next.text.empty() && next.text.size() + events_[at].text.size() > max_bytes) break;
    next.text += events_[at].text;
    next.last_id = events_[at].id;
  }
  return next;
}

std::uint64_t event_log::newest_id() const {
  std::lock_guard lock(mutex_);
  return newest_;
}

void event_log::on_append(std::function<void()> call) {
  std::lock_guard lock(calling_);
  call_ = std::move(call);
}

}  // namespace troupe::http
