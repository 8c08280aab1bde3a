#include "troupe/config/environment/events_environment.hpp"

#include <charconv>

#include "troupe/error/errors.hpp"

namespace troupe::config {
namespace {

constexpr int fewest_events = 64, most_events = 1 << 20;

/// -1: the text is no number.
int whole_number(const std::string& text) {
  int value = -1;
  auto* end = text.data() + text.size();
  auto [stop, status] = std::from_chars(text.data(), end, value);
  return status == std::errc() && stop == end ? value : -1;
}

}  // namespace

events_environment read_events_environment(const environment_reader& read) {
  events_environment made;
  if (auto text = read("TROUPE_EVENTS").value_or(""); !text.empty()) {
    auto number = whole_number(text);
    if (number != 0 && (number < fewest_events || number > most_events))
      throw bad_input("environment variable TROUPE_EVENTS: expected 0 for no events, or a number from " +
                      std::to_string(fewest_events) + " to " + std::to_string(most_events) +
                      " that each thread keeps, got '" + text + "'");
    made.events_per_thread = static_cast<std::size_t>(number);
  }
  made.file = whole_number(read("TROUPE_EVENTS_FD").value_or(""));
  return made;
}

profile_form read_profile_environment(const environment_reader& read) {
  auto text = read("TROUPE_PROFILE").value_or("");
  if (text.empty() || text == "0") return profile_form::none;
  if (text == "1") return profile_form::table;
  if (text == "json") return profile_form::json;
  throw bad_input("environment variable TROUPE_PROFILE: expected 1, json or 0, got '" + text + "'");
}

}  // namespace troupe::config
