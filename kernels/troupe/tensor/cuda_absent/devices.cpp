#include "troupe/tensor/devices.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/detail/device_graph.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {

int num_cuda_devices() { return 0; }
std::string cuda_version() { return ""; }

void require_cuda(int index) {
  throw bad_input(
      "cuda:" + std::to_string(index) +
      " is not there: Troupe was built without CUDA; install the CUDA Toolkit (nvcc must be on the "
      "PATH) and build with cmake --preset cuda, or use cpu");
}

std::string cuda_name(int index) {
  require_cuda(index);
  return "";
}

void synchronize_cuda(int index) { require_cuda(index); }

caching_allocator& cuda_allocator_of(int index) {
  require_cuda(index);
  throw std::logic_error("a GPU without CUDA");
}

std::shared_ptr<caching_allocator> cuda_capture_allocator_of(int) { return nullptr; }

void copy_bytes_cuda(void*, device to_where, const void*, device from_where, std::size_t) {
  require_cuda(to_where.type == device::kind::cuda ? to_where.index : from_where.index);
}

void copy_to_idle_cuda(void*, int to_index, const void*, std::size_t) { require_cuda(to_index); }

void copy_between_gpus(const stream_event&, void*, int to_index, const void*, int, std::size_t,
                       std::shared_ptr<const void>) {
  require_cuda(to_index);
}

void forget_copied_cuda(int index) { require_cuda(index); }

std::unique_ptr<stream_event> record_idle_cuda(int index) {
  require_cuda(index);
  return nullptr;
}

std::unique_ptr<stream_event> record_cuda(int index, event_timing) {
  require_cuda(index);
  return nullptr;
}

void copy_from_cuda_after(const stream_event&, host_copy_use, void*, int index, const void*, std::size_t) {
  require_cuda(index);
}

void fill_zero_cuda(void*, device target, std::size_t) { require_cuda(target.index); }

std::unique_ptr<device_graph> make_cuda_graph(int index) {
  require_cuda(index);
  return nullptr;
}

void refuse_in_capture(std::string_view) {}  // no thread captures

}  // namespace troupe
