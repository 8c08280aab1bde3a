// Captures of one stream, and graphs made of them.
#include <utility>

#include "machine.hpp"

using namespace troupe::emulation;  // the definitions below are the API's own, in no namespace

namespace {

CUgraphExec_st& checked_executable(cudaGraphExec_t executable) {
  if (!executable) refuse("expected an instantiated graph, got null");
  if (executable->is_destroyed) refuse("expected an instantiated graph, got one that was destroyed");
  return *executable;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto& into = checked(stream);
    if (into.capture) return cudaErrorIllegalState;
    into.capture = std::make_unique<CUgraph_st>();
    into.capture_mode = mode;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto& from = checked(stream);
    *graph = nullptr;
    if (!from.capture) return cudaErrorIllegalState;
    auto captured = std::move(from.capture);
    if (std::exchange(from.is_capture_invalid, false)) return cudaErrorStreamCaptureInvalidated;
    *graph = captured.release();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto& asked = checked(stream);
    *status = !asked.capture             ? cudaStreamCaptureStatusNone
              : asked.is_capture_invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(__func__, [=] {
    delete graph;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  return call(__func__, [=] {
    auto& all = the_machine();
    std::lock_guard lock(all.mutex);
    all.executables.push_back(std::make_unique<CUgraphExec_st>());
    *executable = all.executables.back().get();
    (*executable)->work = std::make_shared<const recorded_work>(graph->work);
    return cudaSuccess;
  });
}

// Queued launches keep the graph that they run.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto& gone = checked_executable(executable);
    gone.is_destroyed = true;
    gone.work = nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call(__func__, [=] {
    std::lock_guard lock(the_machine().mutex);
    auto work = checked_executable(executable).work;
    auto& into = checked(stream);
    for (std::size_t i = 0; i < work->size(); ++i) {
      auto status = add_work(into, [work, i] { return (*work)[i](); });
      if (status != cudaSuccess) return status;
    }
    return cudaSuccess;
  });
}
}
