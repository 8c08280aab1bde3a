#include "troupe/tensor/detail/device_graph.hpp"

#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/cuda/graph_capture.hpp"

// Captures use a stream of their own, so that other threads may use the GPU's stream meanwhile; replays use
// the GPU's stream. The capture mode is relaxed, so that the allocator may call cudaMalloc during a capture.

namespace troupe {
namespace {

struct destroy_graph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using owned_graph = std::unique_ptr<CUgraph_st, destroy_graph>;

/// Ends the capture in any case: a stream that stays in capture mode could not be used any more.
class stream_capture {
 public:
  explicit stream_capture(cudaStream_t stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  ~stream_capture() {
    if (!stream_) return;
    cudaGraph_t dropped = nullptr;
    cudaStreamEndCapture(stream_, &dropped);
    if (dropped) cudaGraphDestroy(dropped);
    cudaGetLastError();
  }
  stream_capture(const stream_capture&) = delete;
  stream_capture& operator=(const stream_capture&) = delete;

  owned_graph end() {
    cudaGraph_t made = nullptr;
    check(cudaStreamEndCapture(std::exchange(stream_, nullptr), &made));
    return owned_graph(made);
  }

 private:
  cudaStream_t stream_;
};

class cuda_graph final : public device_graph {
 public:
  explicit cuda_graph(gpu& target) : target_(target) {}
  ~cuda_graph() override {
    gpu_scope scope(target_.index(), std::nothrow);
    drop();
  }

  bool is_captured() const override { return executable_ != nullptr; }

  void capture(const std::function<void()>& work) override {
    gpu_scope scope(target_.index());
    drop();
    owned_stream stream;
    graph_capture made{
        target_.index(), stream.get(), std::make_shared<capture_pool>(target_.allocator()), {}};
    auto graph = capture_into(work, made);
    check(cudaGraphInstantiateWithFlags(&executable_, graph.get(), 0));
    pool_ = std::move(made.pool);
    pinned_ = std::move(made.pinned);
  }

  // A replay within another capture would become part of that graph, but its memory would not.
  void replay() override {
    if (capture_on(target_.index()))
      throw std::logic_error(
          "[captured_step] expected runs outside of another one's work, got one while that is recorded; call "
          "the inner one's work itself");
    gpu_scope scope(target_.index());
    check(cudaGraphLaunch(executable_, target_.own_stream()));
  }

 private:
  static owned_graph capture_into(const std::function<void()>& work, graph_capture& capture) {
    stream_capture running(capture.stream);
    capture_scope current(capture);
    work();
    return running.end();
  }

  /// Waits for the last replay, which uses the graph's memory. This GPU must be current.
  void drop() noexcept {
    if (!executable_) return;
    cudaStreamSynchronize(target_.own_stream());
    cudaGraphExecDestroy(std::exchange(executable_, nullptr));
    pinned_.clear();
    pool_ = nullptr;
  }

  gpu& target_;
  std::shared_ptr<capture_pool> pool_;
  std::vector<std::shared_ptr<void>> pinned_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::unique_ptr<device_graph> make_cuda_graph(int index) {
  return std::make_unique<cuda_graph>(gpu_at(index));
}

}  // namespace troupe
