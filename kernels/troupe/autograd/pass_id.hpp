#pragma once
#include <cstdint>

namespace troupe {

/// Identifies a forward pass. Random numbers of activations (dropout) are a pure function of it, the seed and
/// the layer.
struct pass_id {
  std::uint32_t step = 0;        ///< number of completed optimizer steps
  std::uint32_t microbatch = 0;  ///< index among all microbatches of the step
};

/// The pass that this thread runs.
struct pass_state {
  pass_id id;
  bool is_set = false;      ///< whether a pass_scope is active
  std::uint32_t calls = 0;  ///< calls of next_pass_id outside of any pass_scope
  /// A checkpoint recomputes a forward pass: running statistics must not be updated again.
  bool is_recomputed = false;
};
pass_state current_pass();

/// While it lives, passes of this thread have the given pass_id, or the state of an earlier pass.
class pass_scope {
 public:
  explicit pass_scope(pass_id id) : pass_scope(pass_state{.id = id, .is_set = true}) {}
  explicit pass_scope(pass_state state);
  ~pass_scope();
  pass_scope(const pass_scope&) = delete;
  pass_scope& operator=(const pass_scope&) = delete;

 private:
  pass_state outer_;
};

/// The pass_id for random numbers that are drawn now. Outside of any pass_scope each call returns a new one,
/// so that a plain training loop gets new random numbers in every step, and the same ones in every run.
pass_id next_pass_id();

}  // namespace troupe
