#include "troupe/job/client_mailbox.hpp"

namespace troupe::actors::job {

void client_mailbox::put(client_event event) {
  {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  arrived_.notify_one();
}

client_event client_mailbox::take() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return !events_.empty(); });
  auto event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::size_t client_mailbox::size() const {
  std::lock_guard lock(mutex_);
  return events_.size();
}

}  // namespace troupe::actors::job
