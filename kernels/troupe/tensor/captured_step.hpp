#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "troupe/tensor/device.hpp"

namespace troupe {

class device_graph;

/// Work on one device that is repeated unchanged in every step, such as a forward and backward pass over
/// fixed tensors. On the CPU every run calls the work. On a GPU the first run calls it (warm-up), and the
/// second captures it as a CUDA graph. That run and all later ones launch the graph, which takes far less CPU
/// time than to launch each kernel. The bits are the same.
///
/// So on a GPU the work's CPU code runs only twice, with these consequences. Branches, sizes and scalar
/// arguments (a step number, a seed) are fixed at capture; pass new inputs by copying them into the tensors
/// that the work reads. Copies from CPU memory replay the captured bytes. Tensors allocated during capture
/// belong to the graph and change with each run. Cached values, such as a parameter's conversion to another
/// dtype, are not recomputed: change the parameters between the first two runs, as an optimizer does. During
/// capture, the following throw std::logic_error: waiting for the GPU (read results after the run), running
/// another captured step, and calls to any process group and waits for them. Indices and labels out of
/// range give NaN instead of an exception.
///
/// Not thread-safe. The tensors that the work uses must outlive this object.
class captured_step {
 public:
  /// Throws bad_input if the device does not exist.
  captured_step(device target, std::function<void()> work);
  ~captured_step();
  captured_step(captured_step&&) noexcept;
  captured_step& operator=(captured_step&&) noexcept;

  /// Throws what the work throws; an exception during capture discards the capture, and the next run captures
  /// again.
  void run();
  /// Whether runs launch the captured graph instead of calling the work.
  bool is_captured() const;

 private:
  std::function<void()> work_;
  std::unique_ptr<device_graph> graph_;  ///< null on the CPU
  std::uint64_t num_runs_ = 0;
};

/// Throws std::logic_error, "[function] ...", if this thread is capturing, on any GPU: for calls that replays
/// would leave out, such as those to process groups.
void refuse_in_capture(std::string_view function);

}  // namespace troupe
