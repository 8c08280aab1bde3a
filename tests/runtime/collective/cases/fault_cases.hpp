#pragma once
#include "runtime/collective/cases/member_hosts.hpp"

namespace troupe::testing {

/// Groups of processes in which one is killed, stopped or late at any moment of any call, each drawn from a
/// seed in [first, end). The error names the member on all others, which make a new group and get the right
/// bytes even while a suspended member resumes.
void try_fault_cases(unsigned first, unsigned end, network_of_rank network);
/// The same where one member is suspended during a sum of many elements: its later writes reach no tensor of
/// another member.
void try_large_sums_with_stopped_member(unsigned first, unsigned end, network_of_rank network);

}  // namespace troupe::testing
