#include "troupe/tensor/captured_step.hpp"

#include <utility>

#include "troupe/tensor/device_graph.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {

captured_step::captured_step(device where, std::function<void()> work)
    : work_(std::move(work)), graph_(make_device_graph(where)) {}

captured_step::~captured_step() = default;
captured_step::captured_step(captured_step&&) noexcept = default;
captured_step& captured_step::operator=(captured_step&&) noexcept = default;

bool captured_step::is_recorded() const { return graph_ && graph_->is_recorded(); }

// The first run is no recording: in it libraries are loaded and plans are made, which may wait for the GPU.
void captured_step::run() {
  if (!graph_ || num_runs_ == 0) {
    work_();
  } else {
    if (!graph_->is_recorded()) graph_->record(work_);
    graph_->replay();
  }
  ++num_runs_;
}

std::unique_ptr<device_graph> make_device_graph(device where) {
  require_device(where);
  return where.type == device::kind::cpu ? nullptr : make_cuda_graph(where.index);
}

}  // namespace troupe
