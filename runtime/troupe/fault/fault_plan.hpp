#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::fault {

/// Points of the program at which a fault can be injected.
enum class fault_point : std::uint8_t {
  joined,
  load,
  forward,
  backward,  ///< B, and I where it stands alone
  weight,    ///< W where it stands alone
  reduce,
  apply,
  copy_state,
  keep_copy,
  part_half_written,
  before_manifest,
  read_part,
  recovery,
  leaving,
  gather,
  all_reduce,
  unshard
};
std::string_view to_string(fault_point point);

/// What is injected: SIGKILL, SIGSTOP (the process is suspended), an exception, or a call that never returns
/// while the rest of the process runs on.
enum class fault_kind : std::uint8_t { kill, stop, fail, hang };

/// A fault of a text "POINT[:kill|stop|fail|hang]@rank=R[,step=S][,incarnation=I]".
struct planned_fault {
  fault_point point = fault_point::joined;
  fault_kind kind = fault_kind::kill;
  std::uint64_t rank = 0;
  std::uint64_t incarnation = 0;  ///< 0, so that a respawned process does not fire again
  std::optional<std::uint64_t> step = {};
};
/// In the form that faults_from reads.
std::string to_string(const planned_fault& fault);

/// The faults of a text, which ';' separates. Throws bad_input naming the text and the points there are.
std::vector<planned_fault> faults_from(std::string_view text);

/// Injects faults into this process at named points, to test recovery with real processes. A fault fires
/// once, if rank and incarnation are this process's own and the step, if given, is the current one.
class fault_plan {
 public:
  fault_plan() = default;
  /// Throws bad_input as faults_from does.
  fault_plan(std::string_view text, int rank, std::uint32_t incarnation);
  /// Injects the fault that is planned for this point; returns if there is none. Thread-safe. Throws
  /// std::runtime_error for a `fail`.
  void at(fault_point point, std::optional<std::uint64_t> step = {}) const;
  /// The faults of this process that have not fired.
  std::vector<planned_fault> not_fired() const;

 private:
  struct entry {
    planned_fault planned;
    std::shared_ptr<std::atomic<bool>> fired = std::make_shared<std::atomic<bool>>(false);
  };
  std::vector<entry> mine_;
};

}  // namespace troupe::fault
