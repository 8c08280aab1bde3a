#include "troupe/posix/posted_calls.hpp"

#include <utility>

namespace troupe::posix {

void posted_calls::post(std::function<void()> call) {
  {
    std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  wake_.set();
}

void posted_calls::run_all() {
  wake_.clear();
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }
  for (auto& call : calls) call();
}

}  // namespace troupe::posix
