#include "troupe/link/dropped_frames.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace troupe::actors::link {
namespace {

struct changed {
  const char* name;
  std::uint64_t before, now;
  bool is_foreign;
};

}  // namespace

std::optional<dropped_frames::report> dropped_frames::next(const gate_statistics& gate,
                                                           const transport::transport_statistics& transport) {
  auto seen = std::exchange(gate_, gate);
  auto moved = std::exchange(transport_, transport);
  std::array<changed, 8> all = {{
      {"stale_frames", moved.stale_frames, transport.stale_frames, false},
      {"ended_generation", moved.ended_generation, transport.ended_generation, false},
      {"bad_frames", moved.bad_frames, transport.bad_frames, true},
      {"old_generation", seen.old_generation, gate.old_generation, false},
      {"old_incarnation", seen.old_incarnation, gate.old_incarnation, false},
      {"unknown_actor", seen.unknown_actor, gate.unknown_actor, false},
      {"unknown_sender", seen.unknown_sender, gate.unknown_sender, true},
      {"late_replies", seen.late_replies, gate.late_replies, false},
  }};
  report made;
  for (const auto& one : all) {
    if (one.now == one.before) continue;
    made.text +=
        (made.text.empty() ? "" : " ") + std::string(one.name) + "=" + std::to_string(one.now - one.before);
    made.is_foreign |= one.is_foreign;
  }
  if (made.text.empty()) return {};
  return made;
}

}  // namespace troupe::actors::link
