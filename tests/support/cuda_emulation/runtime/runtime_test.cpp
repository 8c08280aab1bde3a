// The fake CUDA runtime follows the rules of the real one, and refuses uses that CUDA leaves undefined.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/cuda_emulation/runtime/gpus.hpp"
#include "support/cuda_emulation/runtime/stream_work.hpp"

namespace emulation = troupe::emulation;

namespace {

/// For all cases, which may run in one process.
void have_two_gpus() { emulation::set_num_gpus(2); }

/// Memory of the current GPU, with one float per element.
struct gpu_floats {
  explicit gpu_floats(std::size_t count) {
    have_two_gpus();
    void* taken = nullptr;
    REQUIRE(cudaMalloc(&taken, count * sizeof(float)) == cudaSuccess);
    data = static_cast<float*>(taken);
  }
  ~gpu_floats() { cudaFree(data); }
  gpu_floats(const gpu_floats&) = delete;
  gpu_floats& operator=(const gpu_floats&) = delete;

  float* data = nullptr;
};

struct pinned_floats {
  explicit pinned_floats(std::size_t count) {
    void* taken = nullptr;
    REQUIRE(cudaHostAlloc(&taken, count * sizeof(float), cudaHostAllocDefault) == cudaSuccess);
    data = static_cast<float*>(taken);
  }
  ~pinned_floats() { cudaFreeHost(data); }
  pinned_floats(const pinned_floats&) = delete;
  pinned_floats& operator=(const pinned_floats&) = delete;

  float* data = nullptr;
};

cudaStream_t new_stream() {
  have_two_gpus();
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  return event;
}

/// The text that a process writes to standard error before it aborts in `wrong`; empty if it does not abort.
std::string refusal_of(const std::function<void()>& wrong) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  auto child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    wrong();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, count);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? text : "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("work in a stream runs in order, and only when something waits for it") {
  auto* stream = new_stream();
  std::string done;
  emulation::enqueue(stream, [&] { done += 'a'; });
  auto* event = new_event();
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  emulation::enqueue(stream, [&] { done += 'b'; });
  CHECK(done.empty());
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(done == "a");
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(done == "ab");
}

TEST_CASE("a stream that waits for an event runs the other stream up to it") {
  auto *first = new_stream(), *second = new_stream();
  std::string done;
  auto* event = new_event();
  emulation::enqueue(first, [&] { done += 'a'; });
  CHECK(cudaEventRecord(event, first) == cudaSuccess);
  emulation::enqueue(first, [&] { done += 'z'; });
  CHECK(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  emulation::enqueue(second, [&] { done += 'b'; });
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(done == "ab");
  CHECK(cudaStreamSynchronize(first) == cudaSuccess);
}

TEST_CASE("repeated queries of an event see it complete") {
  auto* stream = new_stream();
  auto* event = new_event();
  CHECK(cudaEventQuery(event) == cudaSuccess);  // never recorded
  for (int i = 0; i < 3; ++i) emulation::enqueue(stream, [] {});
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  int asked = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) ++asked;
  CHECK(asked == 3);
}

TEST_CASE("work of two streams that wait for each other's events runs whichever stream is synchronized") {
  auto *first = new_stream(), *second = new_stream();
  bool came = false, met = false;
  emulation::enqueue_attempts(first, [&] { return met = came; });
  emulation::enqueue(second, [&] { came = true; });
  CHECK(cudaStreamSynchronize(first) == cudaSuccess);
  CHECK(met);
}

TEST_CASE("streams and events belong to the GPU that was current when they were made") {
  auto* stream = new_stream();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  auto* event = new_event();
  CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
  CHECK(contains(refusal_of([&] { emulation::enqueue(stream, [] {}); }), "got one in a stream of GPU 0"));
  gpu_floats there(1);
  CHECK(emulation::num_allocations(1) == 1);
  CHECK(contains(refusal_of([&] { cudaMemsetAsync(there.data, 0, 4, stream); }), "memory of GPU 1"));
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("memory of a GPU is NaN at first, and is copied and filled in the stream's order") {
  gpu_floats there(3);
  pinned_floats here(3);
  auto* stream = new_stream();
  CHECK(cudaMemcpyAsync(here.data, there.data, 12, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  for (int i = 0; i < 3; ++i) CHECK(std::isnan(here.data[i]));
  here.data[1] = 5;
  CHECK(cudaMemsetAsync(there.data, 0, 12, stream) == cudaSuccess);
  CHECK(cudaMemcpyAsync(there.data + 1, here.data + 1, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  here.data[1] = 7;  // before the copy runs, which is late
  CHECK(cudaMemcpyAsync(here.data, there.data, 12, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(here.data[0] == 0);
  CHECK(here.data[1] == 7);
}

TEST_CASE("pitches beyond 2^31 - 1 are refused, for a single row too") {
  gpu_floats a(1), b(1);
  auto* stream = new_stream();
  std::size_t most = 0x7fffffff;
  auto copy = [&](std::size_t pitch) {
    return cudaMemcpy2DAsync(a.data, pitch, b.data, 4, 4, 1, cudaMemcpyDeviceToDevice, stream);
  };
  CHECK(copy(most) == cudaSuccess);
  CHECK(copy(most + 1) == cudaErrorInvalidPitchValue);
  CHECK(copy(3) == cudaErrorInvalidPitchValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidPitchValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE("a capture runs nothing, and its graph runs once for each launch") {
  auto* stream = new_stream();
  int runs = 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  emulation::enqueue(stream, [&] { ++runs; });
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(runs == 0);
  for (int i = 0; i < 2; ++i) CHECK(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(runs == 2);
}

TEST_CASE("a synchronization of a capturing stream invalidates the capture") {
  auto* stream = new_stream();
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE("memory is allocated within relaxed captures only") {
  auto* stream = new_stream();
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaMalloc(&memory, 4) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
}

TEST_CASE("a planned failure happens once, at its call") {
  have_two_gpus();
  emulation::fail_call("cudaMalloc", cudaErrorMemoryAllocation, 1);
  void *first = nullptr, *second = nullptr;
  CHECK(cudaMalloc(&first, 4) == cudaSuccess);
  CHECK(cudaMalloc(&second, 4) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&second, 4) == cudaSuccess);
  CHECK(cudaFree(first) == cudaSuccess);
  CHECK(cudaFree(second) == cudaSuccess);
}

TEST_CASE("uses that CUDA leaves undefined end the program with an error") {
  auto* stream = new_stream();
  gpu_floats there(3);
  pinned_floats here(3);
  std::vector<float> pageable(3);
  auto copy_to_gpu = [&](void* to, const void* from, std::size_t size_bytes) {
    return refusal_of([&] {
      cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyHostToDevice, stream);
      cudaStreamSynchronize(stream);
    });
  };
  CHECK(copy_to_gpu(there.data, here.data, 12).empty());
  CHECK(contains(copy_to_gpu(there.data, here.data, 13),
                 "expected 13 bytes within one block, memory of GPU 0"));
  CHECK(contains(copy_to_gpu(there.data, pageable.data(), 12), "within one block, pinned memory"));
  CHECK(contains(copy_to_gpu(here.data, there.data, 12), "the target of cudaMemcpyAsync"));
  CHECK(contains(refusal_of([&] {
                   cudaMemcpyAsync(there.data, here.data, 12, cudaMemcpyHostToDevice, stream);
                   cudaFreeHost(here.data);
                   cudaStreamSynchronize(stream);
                 }),
                 "freed block of 12 bytes"));
  CHECK(contains(refusal_of([&] {
                   cudaFree(there.data);
                   cudaFree(there.data);
                 }),
                 "expected the beginning of a block"));
  CHECK(contains(refusal_of([&] {
                   cudaStreamDestroy(stream);
                   cudaStreamSynchronize(stream);
                 }),
                 "one that was destroyed"));
  CHECK(contains(refusal_of([] { cudaStreamSynchronize(nullptr); }), "the default stream"));
}

#ifndef __SANITIZE_ADDRESS__  // which sees it at once
TEST_CASE("a write behind the end of a block is found when the block is freed") {
  CHECK(contains(refusal_of([] {
                   void* memory = nullptr;
                   cudaMalloc(&memory, 10);
                   static_cast<volatile char*>(memory)[10] = 1;
                   cudaFree(memory);
                 }),
                 "10 bytes into a block of 10 bytes"));
}
#endif

#ifndef __SANITIZE_THREAD__  // which ends a program whose handler of SIGSEGV allocates
TEST_CASE("an access to freed memory or far behind a block's end is named") {
  auto write_at = [](std::size_t offset, bool is_freed) {
    return refusal_of([=] {
      void* memory = nullptr;
      cudaMalloc(&memory, 4096);
      if (is_freed) cudaFree(memory);
      static_cast<volatile char*>(memory)[offset] = 1;
    });
  };
  CHECK(contains(write_at(100, true), "100 bytes into a freed block of 4096 bytes, memory of GPU 0"));
  CHECK(contains(write_at(4096, false), "4096 bytes into a block of 4096 bytes, memory of GPU 0"));
}
#endif
