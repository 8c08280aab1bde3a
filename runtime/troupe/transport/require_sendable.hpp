#pragma once
#include "troupe/error/errors.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::transport {

/// Throws std::invalid_argument for what no transport takes: an undefined tensor, or for another process one
/// in a GPU's memory, which UCX as Debian builds it would read as the CPU's.
inline void require_sendable(const tensor& value, bool is_for_this_process) {
  if (!value.defined()) throw_invalid("send_tensor", "a tensor with elements", "an undefined one");
  if (!is_for_this_process && value.device().type != device::kind::cpu)
    throw_invalid("send_tensor", "a tensor in the memory of the CPU (move it there with .to(device()))",
                  describe(value));
}

}  // namespace troupe::transport
