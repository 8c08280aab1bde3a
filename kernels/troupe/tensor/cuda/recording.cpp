#include "troupe/tensor/cuda/recording.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe {
namespace {

thread_local recording* current = nullptr;

[[noreturn]] void refuse(std::string_view what, std::string_view why) {
  throw std::logic_error(
      "[" + std::string(what) +
      "] expected a call outside of captured_step's work, got one while it is recorded: " + std::string(why));
}

}  // namespace

recording_pool::~recording_pool() {
  cache_.release_cached();
  for (const auto& each : kept_) from_.give_back(each.memory, each.size_bytes, memory_category::activations);
}

recording* recording_on(int index) { return current && current->index == index ? current : nullptr; }

recording_scope::recording_scope(recording& of) {
  if (current)
    throw std::logic_error("[captured_step] expected one recording at a time, got one within another");
  current = &of;
}
recording_scope::~recording_scope() { current = nullptr; }

void refuse_to_wait(int index, std::string_view what) {
  if (recording_on(index))
    refuse(what, "what waits for the GPU cannot be repeated; take results to the CPU after the run");
}

void refuse_in_recording(std::string_view what) {
  if (current)
    refuse(
        what,
        "replays would leave it out; call the group before or after the run. Of a DataParallel, record the "
        "model's forward and loss.backward(replicated.initial_gradient()), and call sync_gradients() after "
        "each run");
}

const void* keep_pinned(recording& in, const void* from, std::size_t size_bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, size_bytes, cudaHostAllocDefault));
  in.pinned.emplace_back(memory, [](void* pinned) { cudaFreeHost(pinned); });
  std::memcpy(memory, from, size_bytes);
  return memory;
}

}  // namespace troupe
