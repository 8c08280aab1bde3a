#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "support/cuda_emulation/execution/call.hpp"
#include "support/cuda_emulation/execution/fiber.hpp"
#include "support/cuda_emulation/execution/options.hpp"
#include "support/cuda_emulation/execution/warp.hpp"

namespace troupe::emulation {

/// A pending copy of cp.async.
struct pending_copy {
  void* to;
  const void* from;
  int source_bytes;
};

/// A CUDA thread of the block that runs.
struct gpu_thread {
  uint3 index{};
  fiber* stack = nullptr;  ///< while it has begun and not ended
  /// It can run if *waits_for != seen.
  const unsigned* waits_for = nullptr;
  unsigned seen = 0;
};

/// The shape of a launch, equal for all its blocks.
struct launch_shape {
  dim3 grid;
  unsigned num_threads = 0;   ///< threads in a block
  unsigned memory_bytes = 0;  ///< dynamic shared memory of a block
};

/// Runs the threads of a block cooperatively: each thread runs until it waits for others or ends. A thread
/// gets a stack when it begins and passes it to the next thread when it ends, so that threads that never wait
/// need one stack. Each OS thread has one such object, which keeps its memory between launches.
class block {
 public:
  using thread_body = void (*)(const void* arguments);

  /// Prepares for the blocks of a launch, before run() is called.
  void prepare(const launch_shape& shape, const execution_options& options, const char* kernel_type,
               thread_body body, const void* arguments);
  /// Runs the block with this index from beginning to end.
  void run(uint3 index);

  uint3 index() const { return index_; }
  const launch_shape& shape() const { return shape_; }
  const execution_options& options() const { return options_; }
  /// The kernel's type, which names its arguments: functions have no names at run time.
  std::string kernel() const;
  warp& warp_of(const gpu_thread& of) { return warps_[of.index.x / num_lanes]; }
  /// The pending copies of a thread, in the order of their issue.
  std::vector<pending_copy>& copies_of(const gpu_thread& of) { return copies_[of.index.x]; }

  /// __syncthreads: returns, when all threads have arrived, whether any thread's `value` was true.
  bool synchronize(const call& by, bool value);
  /// Runs other threads until `generation` changes; `by` is the call in which the current thread waits.
  void wait_for(const unsigned& generation, const call& by);

  gpu_thread* current = nullptr;

 private:
  static void run_threads();
  void end_current();
  gpu_thread* next();
  gpu_thread* next_of_warp();
  fiber& idle_stack();
  [[noreturn]] void fail_deadlocked() const;

  launch_shape shape_;
  execution_options options_;
  const char* kernel_type_ = "";
  thread_body body_ = nullptr;
  const void* arguments_ = nullptr;

  uint3 index_{};
  std::vector<gpu_thread> threads_;
  std::vector<warp> warps_;
  std::vector<std::vector<pending_copy>> copies_;
  std::vector<call> waits_in_;
  std::vector<unsigned> order_;
  std::size_t position_ = 0;  ///< index of `current` in order_
  std::minstd_rand generator_;
  unsigned num_ended_ = 0;

  call barrier_call_;
  unsigned num_arrived_ = 0, barrier_generation_ = 0;
  bool any_[2] = {};

  fiber own_stack_;
  std::deque<fiber> stacks_;
  std::vector<fiber*> idle_;
};

/// The block that this OS thread runs, or null.
extern constinit thread_local block* running;

}  // namespace troupe::emulation
