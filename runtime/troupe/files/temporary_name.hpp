#pragma once
#include <string>
#include <string_view>

namespace troupe::files {

/// This machine's name.
std::string host_name();

/// The name under which this process writes a file before it renames it to `final_name`:
/// ".FINAL_NAME~START~PID~HOST", with the process namespace in HOST. Different for each process, but equal
/// for two threads that write the same file at once.
std::string temporary_name(std::string_view final_name);

/// What all of these names begin with, whoever writes the file.
std::string temporary_name_begin(std::string_view final_name);

/// True if `name` is a temporary one whose writer ran on this host and has ended, so that it will not be
/// renamed any more. Writers on other hosts or in other process namespaces count as alive.
bool is_abandoned(std::string_view name);

}  // namespace troupe::files
