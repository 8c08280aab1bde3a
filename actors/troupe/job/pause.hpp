#pragma once
#include <cereal/types/vector.hpp>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "troupe/job/call.hpp"
#include "troupe/schedule/cut.hpp"

namespace troupe::actors::job {

/// What a program may ask for.
enum class pause_command : std::uint8_t {
  pause = 0,   ///< grants no further steps
  resume = 1,  ///< grants steps again
  step = 2     ///< a paused job: go on by `count` units and stop again
};

struct pause_request {
  std::uint64_t id = 0;  ///< by which the process that sends it knows it again
  pause_command command = pause_command::pause;
  step_unit unit = step_unit::step;  ///< pause_command::step only: what `count` counts
  std::uint64_t count = 1;           ///< pause_command::step only: how far to go
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, command, unit, count);
  }
};

/// Whether the job is paused, and at which cut. Every process keeps the newest, so that a new scheduler
/// learns it from the survivors.
struct pause_state {
  std::uint64_t version = 0;  ///< requests carried out so far: the highest is the newest
  std::uint64_t request = 0;  ///< id of the last one
  std::uint8_t is_paused = 0;
  std::uint8_t is_reached = 0;  ///< every device stands at its position of `stop`
  std::int64_t since_ms = 0;    ///< when the job was paused, in milliseconds of Unix time
  // Where: within this call. Calls that come later run no step.
  std::uint32_t call = 0;
  call_kind kind = call_kind::barrier;
  std::vector<plan_position> stop = {};  ///< [num_devices]; empty: before the first step of the next call
  bool operator==(const pause_state&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(version, request, is_paused, is_reached, since_ms, call, kind, stop);
  }
};

/// The newest pause_state that this process knows, for the program's threads. Thread-safe.
class pause_record {
 public:
  void set(const pause_state& state) {
    std::lock_guard lock(mutex_);
    state_ = state;
  }
  pause_state get() const {
    std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  mutable std::mutex mutex_;
  pause_state state_;
};

}  // namespace troupe::actors::job
