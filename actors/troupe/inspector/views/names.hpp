#pragma once
#include <cstdint>
#include <string>

#include "troupe/actor/child_id.hpp"
#include "troupe/job/call.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/schedule/find_stall.hpp"

namespace troupe::actors::inspector {

// The words of the API for what messages carry as numbers; "unknown" for others.
std::string process_phase_name(std::uint8_t phase);
std::string scheduler_phase_name(std::uint8_t phase);
std::string call_name(job::call_kind kind);
std::string activity_name(schedule::device_activity activity);
std::string child_name(actor::child_role role);
/// The id of a child of a process's supervisor: "1#0/stage/3/replica/1", unique also among processes that
/// were replaced.
std::string actor_id(const messages::process_report& process, const actor::child_id& child);
/// "1#0/supervisor"
std::string supervisor_id(const messages::process_report& process);

}  // namespace troupe::actors::inspector
