#pragma once
#include <string>

namespace troupe::posix {

/// The first usable address of a network interface ("lo"), in numbers, IPv4 before IPv6. Throws bad_input if
/// there is no such interface or it has no address, and system_failure.
std::string address_of_interface(const std::string& interface);

}  // namespace troupe::posix
