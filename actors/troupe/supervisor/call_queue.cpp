#include "troupe/supervisor/call_queue.hpp"

#include <stdexcept>
#include <string>

namespace troupe {

call_queue::outcome call_queue::enter(const call_request& request) {
  if (request.index < completed_->size()) return {{completed_->at(request.index)}, false};
  if (next_.size() == max_waiting)
    throw std::length_error("[call_queue] expected at most " + std::to_string(max_waiting) +
                            " calls queued behind one that the program left by an exception");
  next_.push_back(request);
  return begin_next();
}

/// Starts the next queued call; those whose results are known by now are answered at once.
call_queue::outcome call_queue::begin_next() {
  outcome result;
  while (!current_ && !next_.empty()) {
    auto request = next_.front();
    next_.pop_front();
    if (request.index < completed_->size()) {
      result.told.push_back(completed_->at(request.index));
      continue;
    }
    current_ = request;
    result.begins = true;
  }
  return result;
}

call_queue::outcome call_queue::finished(const call_result& result) {
  completed_->add(result);
  if (!current_) return {};
  // The call was entered while the previous one was still running in other processes.
  if (current_->index == completed_->size()) return {{}, true};
  if (current_->index != result.index) return {};
  current_.reset();
  auto next = begin_next();
  next.told.insert(next.told.begin(), result);
  return next;
}

}  // namespace troupe
