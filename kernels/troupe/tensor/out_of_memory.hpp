#pragma once
#include <memory>
#include <new>
#include <string>

namespace troupe {

/// Thrown by every function that creates tensors if there is no memory; the message names the tensor, its
/// size and the device.
class out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(const std::string& message) : what_(std::make_shared<const std::string>(message)) {}
  const char* what() const noexcept override { return what_->c_str(); }

 private:
  std::shared_ptr<const std::string> what_;
};

}  // namespace troupe
