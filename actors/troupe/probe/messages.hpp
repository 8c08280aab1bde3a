#pragma once
#include <caf/allowed_unsafe_message_type.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "troupe/transport/transport.hpp"

namespace troupe {

/// How the probe of one process talks to that of another.
struct probe_plan {
  std::int64_t size_bytes = 8;
  std::uint64_t messages = 1;       ///< how many the asking one sends, 1 or more
  std::uint64_t window = 1;         ///< how many of them may be unanswered
  bool answer_in_full = true;       ///< with the tensor that came, else with one byte
  std::chrono::nanoseconds spin{};  ///< how long the asking one polls for an answer before it sleeps
  bool operator==(const probe_plan&) const = default;
};

/// When the first message was sent and each answer came; steady clock, in ns.
using probe_times = std::vector<std::int64_t>;

/// Program -> asking probe: measure. `done` is called on the probe's thread, with the times, or with why
/// there are none.
struct start_probe {
  probe_plan plan;
  std::function<void(probe_times times, const std::string& failure)> done = nullptr;
};

/// Program -> answering probe: the other one may begin; answer until the end, polling for `spin`.
struct answer_probes {
  std::chrono::nanoseconds spin{};
};

/// Program -> asking probe: no answer will come any more.
struct probe_lost {
  std::string cause;
};

/// Transport -> probe: a tensor that came while the probe was not waiting in the transport.
struct probe_arrived {
  tensor_tag tag;
  tensor value;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::start_probe)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::answer_probes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::probe_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::probe_arrived)
