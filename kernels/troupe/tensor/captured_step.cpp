#include "troupe/tensor/captured_step.hpp"

#include <utility>

#include "troupe/tensor/detail/device_graph.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {

captured_step::captured_step(device target, std::function<void()> work)
    : work_(std::move(work)), graph_(make_device_graph(target)) {}

captured_step::~captured_step() = default;
captured_step::captured_step(captured_step&&) noexcept = default;
captured_step& captured_step::operator=(captured_step&&) noexcept = default;

bool captured_step::is_captured() const { return graph_ && graph_->is_captured(); }

// The first run is a warm-up without capture: it loads libraries and creates plans, which may wait for the
// GPU.
void captured_step::run() {
  if (!graph_ || num_runs_ == 0) {
    work_();
  } else {
    if (!graph_->is_captured()) graph_->capture(work_);
    graph_->replay();
  }
  ++num_runs_;
}

std::unique_ptr<device_graph> make_device_graph(device target) {
  require_device(target);
  return target.type == device::kind::cpu ? nullptr : make_cuda_graph(target.index);
}

}  // namespace troupe
