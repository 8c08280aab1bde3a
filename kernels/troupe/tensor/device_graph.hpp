#pragma once
#include <functional>
#include <memory>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// A recording of what a GPU was given to do, for captured_step.
class device_graph {
 public:
  virtual ~device_graph() = default;
  /// Calls `work`, of which nothing is done yet. Throws what it throws, and holds no recording then.
  virtual void record(const std::function<void()>& work) = 0;
  virtual bool is_recorded() const = 0;
  /// Queues all of the recording after what was queued before.
  virtual void replay() = 0;
};

/// Null for the CPU, which has none. Throws bad_input if the device is not there.
std::unique_ptr<device_graph> make_device_graph(device where);

// Of GPUs; the build picks cuda/ or cuda_absent/.
std::unique_ptr<device_graph> make_cuda_graph(int index);

}  // namespace troupe
