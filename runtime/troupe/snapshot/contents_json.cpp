#include "troupe/snapshot/contents_json.hpp"

#include <stdexcept>

#include "troupe/files/snapshot_error.hpp"

namespace troupe::snapshot {
namespace {

using json = nlohmann::ordered_json;

dtype dtype_from_name(const std::string& name) {
  try {
    for (std::uint8_t number = 0;; ++number)
      if (auto type = dtype_from_number(number); to_string(type) == name) return type;
  } catch (const std::invalid_argument&) {  // past the last one
    throw files::snapshot_error("it lists a tensor of the unknown dtype '" + name + "'");
  }
}

tensor_contents contents_from(const json& fields) {
  tensor_contents held;
  fields.at("name").get_to(held.name);
  held.type = dtype_from_name(fields.at("dtype").get<std::string>());
  fields.at("shape").get_to(held.whole);
  if (fields.contains("replica")) held.replica = fields.at("replica").get<std::int32_t>();
  if (!fields.contains("boxes")) {
    shape whole(held.whole);
    held.boxes = {whole_box(whole)};
    held.end = whole.num_elements();
    return held;
  }
  for (const auto& one : fields.at("boxes"))
    held.boxes.push_back({one.at("offset").get<std::vector<std::int64_t>>(),
                          one.at("extent").get<std::vector<std::int64_t>>()});
  fields.at("elements").at(0).get_to(held.begin);
  fields.at("elements").at(1).get_to(held.end);
  return held;
}

}  // namespace

json contents_json(const std::vector<tensor_contents>& contents) {
  auto list = json::array();
  for (const auto& held : contents) {
    json fields = {{"name", held.name}, {"dtype", std::string(to_string(held.type))}, {"shape", held.whole}};
    if (!is_whole(held)) {
      fields["boxes"] = json::array();
      for (const auto& one : held.boxes)
        fields["boxes"].push_back({{"offset", one.offset}, {"extent", one.extent}});
      fields["elements"] = json::array({held.begin, held.end});
    }
    if (held.replica) fields["replica"] = *held.replica;
    list.push_back(std::move(fields));
  }
  return list;
}

std::vector<tensor_contents> contents_from_json(const json& list) {
  std::vector<tensor_contents> contents;
  try {
    for (const auto& fields : list) contents.push_back(contents_from(fields));
  } catch (const std::invalid_argument& problem) {  // of shape
    throw files::snapshot_error(std::string("it lists a tensor that has no shape: ") + problem.what());
  }
  for (const auto& held : contents)
    if (auto problem = problem_of(held); !problem.empty())
      throw files::snapshot_error("it is inconsistent: " + problem);
  return contents;
}

}  // namespace troupe::snapshot
