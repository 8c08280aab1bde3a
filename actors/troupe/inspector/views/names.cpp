#include "troupe/inspector/views/names.hpp"

#include <array>
#include <cstddef>

namespace troupe::actors::inspector {
namespace {

template <std::size_t Size>
std::string word(const std::array<const char*, Size>& words, std::size_t number) {
  return number < Size ? words[number] : "unknown";
}

}  // namespace

std::string process_phase_name(std::uint8_t phase) {
  return word<4>({"joining", "quiescing", "waiting", "active"}, phase);
}

std::string scheduler_phase_name(std::uint8_t phase) {
  return word<4>({"gathering", "finding", "restoring", "running"}, phase);
}

std::string call_name(job::call_kind kind) {
  return word<9>({"none", "train", "evaluate", "hash", "barrier", "gather", "predict", "forward_backward",
                  "optimizer_step"},
                 static_cast<std::size_t>(kind));
}

std::string activity_name(schedule::device_activity activity) {
  return word<5>({"idle", "computing", "applying", "waiting_for_tensor", "waiting_for_samples"},
                 static_cast<std::size_t>(activity));
}

std::string child_name(std::uint8_t role) {
  return word<9>({"loader", "peer_copy_store", "disk", "snapshot_writer", "stage", "device", "scheduler",
                  "gatherer", "inspector"},
                 role);
}

std::string actor_id(const messages::process_report& process, const std::string& role, int number,
                     int replica) {
  auto id = std::to_string(process.rank) + "#" + std::to_string(process.incarnation) + "/" + role;
  if (role != "supervisor") id += "/" + std::to_string(number);
  if (replica > 0) id += "/replica/" + std::to_string(replica);
  return id;
}

}  // namespace troupe::actors::inspector
