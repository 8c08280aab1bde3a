#include "troupe/supervisor/state/pause_orders.hpp"

namespace troupe {

std::optional<pause_orders::order> pause_orders::next() {
  if (waiting_.empty() || based_on_) return {};
  based_on_ = known_.version;
  return order{known_.version, waiting_.front()};
}

bool pause_orders::learn(const pause_state& told) {
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

}  // namespace troupe
