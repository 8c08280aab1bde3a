#pragma once
#include <cstdint>
#include <string>

#include "troupe/job/call.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/schedule/find_stall.hpp"

namespace troupe::actors::inspector {

// The words of the API for what messages carry as numbers; "unknown" for others.
std::string process_phase_name(std::uint8_t phase);
std::string scheduler_phase_name(std::uint8_t phase);
std::string call_name(job::call_kind kind);
std::string activity_name(schedule::device_activity activity);
std::string child_name(std::uint8_t role);
/// The id of an actor of a process: "1#0/device/3", unique also among processes that were replaced.
std::string actor_id(const messages::process_report& process, const std::string& role, int number,
                     int replica = 0);

}  // namespace troupe::actors::inspector
