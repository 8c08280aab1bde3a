#include "troupe/supervisor/state/pause_requests.hpp"

namespace troupe::actors::supervisor {

std::optional<pause_requests::versioned_request> pause_requests::next() {
  if (waiting_.empty() || based_on_) return {};
  based_on_ = known_.version;
  return versioned_request{known_.version, waiting_.front()};
}

bool pause_requests::learn(const job::pause_state& told) {
  if (told.version < known_.version) return false;
  known_ = told;
  if (!based_on_ || known_.version == *based_on_) return true;
  if (known_.request == waiting_.front().id) {
    carried_out_.emplace_back(known_.request, known_.version);
    waiting_.pop_front();
  }
  based_on_.reset();
  return true;
}

}  // namespace troupe::actors::supervisor
