#include "troupe/tensor/cuda/graph_capture.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe {
namespace {

thread_local graph_capture* current = nullptr;

[[noreturn]] void refuse(std::string_view function, std::string_view why) {
  throw std::logic_error(
      "[" + std::string(function) +
      "] expected a call outside of captured_step's work, got one while it is recorded: " + std::string(why));
}

}  // namespace

capture_pool::~capture_pool() {
  allocator_.release_cached();
  for (const auto& each : kept_) from_.deallocate(each.memory, each.size_bytes, memory_category::activations);
}

graph_capture* capture_on(int index) { return current && current->index == index ? current : nullptr; }

capture_scope::capture_scope(graph_capture& capture) {
  if (current)
    throw std::logic_error("[captured_step] expected one recording at a time, got one within another");
  current = &capture;
}
capture_scope::~capture_scope() { current = nullptr; }

void refuse_to_wait(int index, std::string_view function) {
  if (capture_on(index))
    refuse(function, "what waits for the GPU cannot be repeated; take results to the CPU after the run");
}

void refuse_in_capture(std::string_view function) {
  if (current)
    refuse(
        function,
        "replays would leave it out; call the group before or after the run. Of a DataParallel, capture the "
        "model's forward and loss.backward(replicated.initial_gradient()), and call sync_gradients() after "
        "each run");
}

const void* keep_pinned(graph_capture& capture, const void* from, std::size_t size_bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, size_bytes, cudaHostAllocDefault));
  capture.pinned.emplace_back(memory, [](void* pinned) { cudaFreeHost(pinned); });
  std::memcpy(memory, from, size_bytes);
  return memory;
}

}  // namespace troupe
