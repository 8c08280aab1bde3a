#include "support/fake_cuda_libraries/fake_library.hpp"

namespace troupe::testing {

void fake_library::fail_call(std::string_view function, int status, int calls_before) {
  std::lock_guard lock(mutex_);
  failures_[std::string(function)] = {status, calls_before};
}

int fake_library::num_calls(std::string_view function) const {
  std::lock_guard lock(mutex_);
  auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

int fake_library::num_live() const {
  std::lock_guard lock(mutex_);
  return num_live_;
}

int fake_library::on_call(std::string_view function) {
  std::lock_guard lock(mutex_);
  ++calls_[std::string(function)];
  auto found = failures_.find(function);
  if (found == failures_.end() || found->second.calls_before-- > 0) return 0;
  auto status = found->second.status;
  failures_.erase(found);
  return status;
}

void fake_library::on_create() {
  std::lock_guard lock(mutex_);
  ++num_live_;
}

void fake_library::on_destroy() {
  std::lock_guard lock(mutex_);
  --num_live_;
}

}  // namespace troupe::testing
