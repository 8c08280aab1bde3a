#include "troupe/collective/work.hpp"

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/engine/operation_queue.hpp"

namespace troupe {

void work::wait() {
  if (!call_) return;
  queue_->wait(*call_);
  if (call_->error) std::rethrow_exception(call_->error);
}

void work::cancel() {
  if (is_done()) return;
  queue_->cancel(*call_);
}

}  // namespace troupe
