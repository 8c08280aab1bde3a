#include "troupe/config/environment/profile_environment.hpp"

#include "troupe/error/errors.hpp"

namespace troupe::config {

profile_form read_profile_environment(const environment_reader& read) {
  auto text = read("TROUPE_PROFILE").value_or("");
  if (text.empty() || text == "0") return profile_form::none;
  if (text == "1") return profile_form::table;
  if (text == "json") return profile_form::json;
  throw bad_input("environment variable TROUPE_PROFILE: expected 1, json or 0, got '" + text + "'");
}

}  // namespace troupe::config
