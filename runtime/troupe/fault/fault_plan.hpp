#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Places where a drill can kill its own process.
enum class fault_point : std::uint8_t {
  joined,
  forward,
  backward,
  apply,
  copy_state,
  part_half_written,
  before_manifest,
  recovery
};
std::string_view to_string(fault_point point);

/// Kills this process with SIGKILL at named points: how recovery is tested on real processes.
///
/// Text form: "POINT@rank=R[,step=S][,incarnation=I]", several joined by ';'. A process fires an entry if
/// rank and incarnation (default 0, so that a respawned process does not fire again) are its own and, where
/// given, the step is the one at hand.
class fault_plan {
 public:
  fault_plan() = default;
  /// Throws bad_input naming the text and the points there are.
  fault_plan(std::string_view text, int rank, std::uint32_t incarnation);
  /// Returns if no entry asks for this point; does not return otherwise.
  void at(fault_point point, std::optional<std::uint64_t> step = {}) const;

 private:
  struct entry {
    fault_point point;
    std::optional<std::uint64_t> step;
  };
  std::vector<entry> mine_;
};

}  // namespace troupe
