#pragma once
#include <memory>
#include <new>
#include <string>

namespace troupe {

/// There is no memory for a tensor: the message names it, its bytes and the device. All that makes tensors
/// throws it.
class out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(const std::string& what) : what_(std::make_shared<const std::string>(what)) {}
  const char* what() const noexcept override { return what_->c_str(); }

 private:
  std::shared_ptr<const std::string> what_;
};

}  // namespace troupe
