#include "troupe/inspector/views/names.hpp"

#include <array>
#include <cstddef>

namespace troupe::actors::inspector {
namespace {

template <std::size_t Size>
std::string word(const std::array<const char*, Size>& words, std::size_t number) {
  return number < Size ? words[number] : "unknown";
}

std::string process_id(const messages::process_report& process) {
  return std::to_string(process.rank) + "#" + std::to_string(process.incarnation);
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
  return word<6>(
      {"idle", "computing", "applying", "waiting_for_tensor", "waiting_for_samples", "copying_state"},
      static_cast<std::size_t>(activity));
}

std::string child_name(actor::child_role role) {
  return word<9>({"loader", "peer_copy_store", "disk", "snapshot_writer", "stage", "device", "scheduler",
                  "gatherer", "inspector"},
                 static_cast<std::size_t>(role));
}

std::string actor_id(const messages::process_report& process, const actor::child_id& child) {
  auto id = process_id(process) + "/" + child_name(child.role) + "/" + std::to_string(child.number);
  if (child.replica > 0) id += "/replica/" + std::to_string(child.replica);
  if (child.slice > 0) id += "/slice/" + std::to_string(child.slice);
  return id;
}

std::string supervisor_id(const messages::process_report& process) {
  return process_id(process) + "/supervisor";
}

}  // namespace troupe::actors::inspector
