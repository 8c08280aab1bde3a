#include "troupe/supervisor/call_queue.hpp"

namespace troupe {

call_queue::outcome call_queue::enter(const call_request& request) {
  if (request.index < completed_.size()) return {{completed_[request.index]}, false};
  next_.push_back(request);
  return begin_next();
}

/// Calls that are over by now are answered on the way.
call_queue::outcome call_queue::begin_next() {
  outcome result;
  while (!current_ && !next_.empty()) {
    auto request = next_.front();
    next_.pop_front();
    if (request.index < completed_.size()) {
      result.told.push_back(completed_[request.index]);
      continue;
    }
    current_ = request;
    result.begins = true;
  }
  return result;
}

call_queue::outcome call_queue::finished(const call_result& result) {
  if (result.index == completed_.size()) completed_.push_back(result);
  if (!current_) return {};
  // It was entered while the call before it was not over for the others.
  if (current_->index == completed_.size()) return {{}, true};
  if (current_->index != result.index) return {};
  current_.reset();
  auto next = begin_next();
  next.told.insert(next.told.begin(), result);
  return next;
}

void call_queue::learn(const std::vector<call_result>& completed) {
  if (completed.size() > completed_.size()) completed_ = completed;
}

}  // namespace troupe
