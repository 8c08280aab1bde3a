#pragma once
#include <source_location>
#include <string>
#include <string_view>

namespace troupe {

/// The name alone of the function at a place, for messages: "read_events" for
/// "troupe::process_events troupe::read_events(const std::filesystem::path&)". Of a lambda: the name of the
/// function around it.
std::string short_function_name(const std::source_location& where);
/// The same of a name as the compiler writes it.
std::string_view short_function_name(std::string_view signature);

}  // namespace troupe
