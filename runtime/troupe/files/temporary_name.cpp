#include "troupe/files/temporary_name.hpp"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace troupe::files {
namespace {

constexpr char separator = '~';

/// When process `pid` started, in clock ticks since the boot; empty if there is no such process. It
/// distinguishes a process from an ended one with the same id.
std::string start_of(std::string_view pid) {
  std::ifstream file("/proc/" + std::string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  // "pid (name) state ...": the name may contain any character; the start is the 20th field after the last
  // closing parenthesis.
  auto at = text.rfind(')');
  for (int field = 0; at != std::string::npos && field < 20; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return {};
  return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

/// Removes the part after the last separator from `rest` and returns it.
std::string_view take_last(std::string_view& rest) {
  auto at = rest.rfind(separator);
  if (at == std::string_view::npos) return {};
  auto last = rest.substr(at + 1);
  rest = rest.substr(0, at);
  return last;
}

/// The host and the process namespace, in which process ids are unique.
std::string own_place() {
  struct stat status {};
  ::stat("/proc/self/ns/pid", &status);
  return host_name() + ":" + std::to_string(status.st_ino);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  std::string text = name.data();
  std::ranges::replace_if(
      text, [](char c) { return c == '/' || c == separator; }, '_');
  return text;
}

std::string temporary_name_begin(std::string_view final_name) {
  return std::string(".").append(final_name).append(1, separator);
}

std::string temporary_name(std::string_view final_name) {
  auto pid = std::to_string(::getpid());
  return temporary_name_begin(final_name) + start_of(pid) + separator + pid + separator + own_place();
}

bool is_abandoned(std::string_view name) {
  if (!name.starts_with('.')) return false;
  auto place = take_last(name);
  auto pid = take_last(name);
  auto start = take_last(name);
  if (place != own_place() || !is_number(pid) || !is_number(start)) return false;
  return start_of(pid) != start;
}

}  // namespace troupe::files
