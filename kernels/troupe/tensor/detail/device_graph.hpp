#pragma once
#include <functional>
#include <memory>

#include "troupe/tensor/device.hpp"

namespace troupe {

/// A captured graph of GPU work (CUDA graph), for captured_step.
class device_graph {
 public:
  virtual ~device_graph() = default;
  /// Calls `work` and captures its GPU operations without running them. Throws what `work` throws, and holds
  /// no graph then.
  virtual void capture(const std::function<void()>& work) = 0;
  virtual bool is_captured() const = 0;
  /// Launches the graph in stream order.
  virtual void replay() = 0;
};

/// Null for the CPU. Throws bad_input if the device does not exist.
std::unique_ptr<device_graph> make_device_graph(device target);

// For GPUs; implemented in cuda/ or cuda_absent/, as configured.
std::unique_ptr<device_graph> make_cuda_graph(int index);

}  // namespace troupe
