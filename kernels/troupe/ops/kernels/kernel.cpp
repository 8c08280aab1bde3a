#include "troupe/ops/kernels/kernel.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

void refuse_operation(std::string_view operation, const device& target) {
  throw_invalid(operation, "tensors in the memory of the CPU (move them there with .to(device()))",
                to_string(target) + ", and GPUs do not have this operation");
}

}  // namespace troupe
