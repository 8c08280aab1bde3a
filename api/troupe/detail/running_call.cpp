#include "troupe/detail/running_call.hpp"

#include <stdexcept>

namespace troupe::detail {

running_call::scope::scope(running_call& call, const char* name) : call_(call) {
  std::lock_guard lock(call_.mutex_);
  call_.require_none_locked(name);
  call_.call_ = name;
}

running_call::scope::~scope() {
  std::lock_guard lock(call_.mutex_);
  call_.call_ = nullptr;
}

running_call::callback::callback(running_call& call, const char* name) : call_(call) {
  std::lock_guard lock(call_.mutex_);
  call_.callback_ = name;
  call_.callback_thread_ = std::this_thread::get_id();
}

running_call::callback::~callback() {
  std::lock_guard lock(call_.mutex_);
  call_.callback_ = nullptr;
}

void running_call::require_none(const char* name) const {
  std::lock_guard lock(mutex_);
  require_none_locked(name);
}

void running_call::require_no_callback(const char* name) const {
  std::lock_guard lock(mutex_);
  if (callback_ && callback_thread_ == std::this_thread::get_id()) require_none_locked(name);
}

std::string running_call::text() const {
  std::lock_guard lock(mutex_);
  return text_locked();
}

std::string running_call::text_locked() const {
  if (!call_) return {};
  return callback_ ? std::string("the callback ") + callback_ + " of " + call_ : call_;
}

void running_call::require_none_locked(const char* name) const {
  if (!call_) return;
  throw std::logic_error(
      "[" + std::string(name) + "] expected no other call of this process, got one while " + text_locked() +
      " runs: it would wait for " + call_ +
      " to end. Call it after that, on one thread; to act between steps, call fit for fewer "
      "steps at a time, or step_event::cancel, and go on after it");
}

}  // namespace troupe::detail
