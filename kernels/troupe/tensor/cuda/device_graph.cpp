#include "troupe/tensor/device_graph.hpp"

#include <utility>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"
#include "troupe/tensor/cuda/recording.hpp"

// Recording goes through a stream of its own, so that other threads may use the GPU's meanwhile; replays go
// through the GPU's. The mode is relaxed: memory that the cache lacks is allocated at once, while recording.

namespace troupe {
namespace {

class owned_stream {
 public:
  owned_stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~owned_stream() { cudaStreamDestroy(stream_); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

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
  ~cuda_graph() override { drop(); }

  bool is_recorded() const override { return executable_ != nullptr; }

  void record(const std::function<void()>& work) override {
    gpu_scope scope(on_.index());
    drop();
    owned_stream stream;
    recorded_ = {on_.index(), stream.get(), std::make_shared<recording_pool>(on_.cache()), {}};
    auto graph = captured(work, stream.get());
    check(cudaGraphInstantiateWithFlags(&executable_, graph.get(), 0));
  }

  void replay() override {
    gpu_scope scope(on_.index());
    check(cudaGraphLaunch(executable_, on_.stream()));
  }

 private:
  owned_graph captured(const std::function<void()>& work, cudaStream_t stream) {
    capture running(stream);
    recording_scope current(recorded_);
    work();
    return running.end();
  }

  /// What it owns is needed until its last replay is over.
  void drop() {
    if (!executable_) return;
    gpu_scope scope(on_.index());
    cudaStreamSynchronize(on_.stream());
    cudaGraphExecDestroy(std::exchange(executable_, nullptr));
    recorded_ = {};
  }

  gpu& on_;
  recording recorded_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::unique_ptr<device_graph> make_cuda_graph(int index) {
  return std::make_unique<cuda_graph>(gpu_at(index));
}

}  // namespace troupe
