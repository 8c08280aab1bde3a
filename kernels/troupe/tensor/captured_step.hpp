#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "troupe/tensor/device.hpp"

namespace troupe {

class device_graph;

/// Work on one device that is the same in every step, such as a forward and a backward pass over tensors that
/// stay where they are. On the CPU every run calls it. On a GPU the first run calls it; the second calls it
/// and records, as a CUDA graph, what it queues; and that run and all later ones queue the graph at once,
/// which takes the CPU far less time than to queue each kernel. Results are the same bits.
///
/// So on a GPU the work's own code runs twice only, and what it decides then (branches, sizes, numbers that
/// it passes on, such as a step's number or a seed) stays: new inputs are copied into the tensors that it
/// reads. Copies from the CPU's memory repeat the recorded bytes. What it allocates while recorded belongs to
/// the graph, and tensors that it keeps from then on change with each run. What it finds computed before,
/// such as a parameter in another dtype, is not computed again: change the parameters between the first two
/// runs, as an optimizer does. To wait for the GPU while recorded throws std::logic_error: results go to the
/// CPU after the run. So does a recorded step's run within another's work, and so does a call to a process
/// group or a wait for one: replays would leave it out. Indices and labels out of range are not
/// refused then: what they lead to is NaN.
///
/// Not thread-safe. The tensors that the work uses outlive it.
class captured_step {
 public:
  /// Throws bad_input if the device is not there.
  captured_step(device where, std::function<void()> work);
  ~captured_step();
  captured_step(captured_step&&) noexcept;
  captured_step& operator=(captured_step&&) noexcept;

  /// Throws what the work throws; what was recorded by then is dropped, and the next run records again.
  void run();
  /// Whether runs replay a recording, rather than call the work.
  bool is_recorded() const;

 private:
  std::function<void()> work_;
  std::unique_ptr<device_graph> graph_;  ///< null on the CPU
  std::uint64_t num_runs_ = 0;
};

/// Throws std::logic_error, "[what] ...", if this thread records, on whichever GPU: for calls that replays
/// would leave out, such as those to process groups.
void refuse_in_recording(std::string_view what);

}  // namespace troupe
