#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Places where a drill can strike its own process.
enum class fault_point : std::uint8_t {
  joined,
  load,
  forward,
  backward,
  reduce,
  apply,
  copy_state,
  part_half_written,
  before_manifest,
  recovery,
  leaving,
  gather
};
std::string_view to_string(fault_point point);

/// What a drill does: SIGKILL, SIGSTOP (the process hangs), an exception, or a call that never returns while
/// the process lives on.
enum class fault_kind : std::uint8_t { kill, stop, fail, hang };

/// Strikes this process at named points: how recovery is tested on real processes.
///
/// Text form: "POINT[:kill|stop|fail|hang]@rank=R[,step=S][,incarnation=I]", several joined by ';'; kill
/// where nothing is said. An entry fires once, if rank and incarnation (default 0, so that a respawned
/// process does not fire again) are this process's own and, where given, the step is the one at hand.
class fault_plan {
 public:
  fault_plan() = default;
  /// Throws bad_input naming the text and the points there are.
  fault_plan(std::string_view text, int rank, std::uint32_t incarnation);
  /// Returns if no entry asks for this point. Thread-safe. Throws std::runtime_error for a `fail`.
  void at(fault_point point, std::optional<std::uint64_t> step = {}) const;

 private:
  struct entry {
    fault_point point = fault_point::joined;
    fault_kind kind = fault_kind::kill;
    std::optional<std::uint64_t> step;
    std::shared_ptr<std::atomic<bool>> fired = std::make_shared<std::atomic<bool>>(false);
  };
  std::vector<entry> mine_;
};

}  // namespace troupe
