#pragma once
#include <stdexcept>

namespace troupe {

/// A device that this process cannot use any more, whatever it does: a GPU after an error within a kernel,
/// such as an illegal address. Another process can.
class device_lost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace troupe
