#include "inspect/job_snapshot.hpp"

namespace troupe {

using json = nlohmann::ordered_json;

const json& job_snapshot::part(const std::string& name) const {
  static const json nothing = json::object();
  auto found = parts.find(name);
  return found == parts.end() || !found->is_object() ? nothing : *found;
}

const json& job_snapshot::rows(const std::string& name) const {
  static const json none = json::array();
  const auto& whole = part(name);
  auto found = whole.find(name);
  return found == whole.end() || !found->is_array() ? none : *found;
}

const std::vector<std::string>& snapshot_parts() {
  static const std::vector<std::string> parts = {"job",     "findings",  "processes", "actors",
                                                 "devices", "links",     "timeline",  "plan",
                                                 "metrics", "snapshots", "commands",  "log"};
  return parts;
}

std::string text_in(const json& object, const char* name, const std::string& otherwise) {
  if (!object.is_object()) return otherwise;
  auto found = object.find(name);
  return found == object.end() || !found->is_string() ? otherwise : found->get<std::string>();
}

double number_in(const json& object, const char* name, double otherwise) {
  return has_number(object, name) ? object.find(name)->get<double>() : otherwise;
}

bool has_number(const json& object, const char* name) {
  if (!object.is_object()) return false;
  auto found = object.find(name);
  return found != object.end() && found->is_number();
}

}  // namespace troupe
