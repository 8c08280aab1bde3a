#include "troupe/tensor/detail/device_graph.hpp"

#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {

std::unique_ptr<device_graph> make_cuda_graph(int index) {
  require_cuda(index);
  return nullptr;
}

void refuse_in_capture(std::string_view) {}  // no thread captures

}  // namespace troupe
