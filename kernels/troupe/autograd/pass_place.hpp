#pragma once
#include <cstdint>

namespace troupe {

/// Which pass through a model this is: random numbers of activations are a pure function of it, of the seed
/// and of the layer.
struct pass_place {
  std::uint32_t step = 0;        ///< optimizer steps done before
  std::uint32_t microbatch = 0;  ///< in the whole step
};

/// Where this thread is in its passes.
struct pass_position {
  pass_place place;
  bool is_set = false;      ///< a pass_scope gave the place
  std::uint32_t calls = 0;  ///< of next_pass_place, where none did
  /// A checkpoint computes again what forward has computed: running statistics have moved already.
  bool is_repeated = false;
};
pass_position current_pass();

/// While it lives, passes of this thread are at one place, or are repeated from an earlier position.
class pass_scope {
 public:
  explicit pass_scope(pass_place place) : pass_scope(pass_position{.place = place, .is_set = true}) {}
  explicit pass_scope(pass_position position);
  ~pass_scope();
  pass_scope(const pass_scope&) = delete;
  pass_scope& operator=(const pass_scope&) = delete;

 private:
  pass_position outer_;
};

/// The place for random numbers that are drawn now. Outside of every scope each call is at a place of its
/// own, so that a plain training loop gets new numbers in every step, and the same ones in every run.
pass_place next_pass_place();

}  // namespace troupe
