#include "troupe/tensor/device_graph.hpp"

#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/cuda/recording.hpp"

// Recording goes through a stream of its own, so that other threads may use the GPU's meanwhile; replays go
// through the GPU's. The mode is relaxed: memory that the cache lacks is allocated at once, while recording.

namespace troupe {
namespace {

struct destroy_graph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using owned_graph = std::unique_ptr<CUgraph_st, destroy_graph>;

/// Ends the capture in any case: a stream left in capture could be used no more.
class capture {
 public:
  explicit capture(cudaStream_t stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  ~capture() {
    if (!stream_) return;
    cudaGraph_t dropped = nullptr;
    cudaStreamEndCapture(stream_, &dropped);
    if (dropped) cudaGraphDestroy(dropped);
    cudaGetLastError();
  }
  capture(const capture&) = delete;
  capture& operator=(const capture&) = delete;

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
  explicit cuda_graph(gpu& on) : on_(on) {}
  ~cuda_graph() override {
    gpu_scope scope(on_.index(), std::nothrow);
    drop();
  }

  bool is_recorded() const override { return executable_ != nullptr; }

  void record(const std::function<void()>& work) override {
    gpu_scope scope(on_.index());
    drop();
    owned_stream stream;
    recording made{on_.index(), stream.get(), std::make_shared<recording_pool>(on_.cache()), {}};
    auto graph = captured(work, made);
    check(cudaGraphInstantiateWithFlags(&executable_, graph.get(), 0));
    pool_ = std::move(made.pool);
    pinned_ = std::move(made.pinned);
  }

  // A replay within another recording would become part of that, but what it owns would not.
  void replay() override {
    if (recording_on(on_.index()))
      throw std::logic_error(
          "[captured_step] expected runs outside of another one's work, got one while that is recorded; call "
          "the inner one's work itself");
    gpu_scope scope(on_.index());
    check(cudaGraphLaunch(executable_, on_.own_stream()));
  }

 private:
  static owned_graph captured(const std::function<void()>& work, recording& into) {
    capture running(into.stream);
    recording_scope current(into);
    work();
    return running.end();
  }

  /// What it owns is needed until its last replay is over. This GPU is the current one.
  void drop() noexcept {
    if (!executable_) return;
    cudaStreamSynchronize(on_.own_stream());
    cudaGraphExecDestroy(std::exchange(executable_, nullptr));
    pinned_.clear();
    pool_ = nullptr;
  }

  gpu& on_;
  std::shared_ptr<recording_pool> pool_;
  std::vector<std::shared_ptr<void>> pinned_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::unique_ptr<device_graph> make_cuda_graph(int index) {
  return std::make_unique<cuda_graph>(gpu_at(index));
}

}  // namespace troupe
