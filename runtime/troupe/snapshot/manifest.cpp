#include "troupe/snapshot/manifest.hpp"

#include <time.h>
#include <map>
#include <set>
#include <span>

#include "troupe/files/checksum.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/json/read_json.hpp"
#include "troupe/snapshot/contents_json.hpp"
#include "troupe/snapshot/folder_layout.hpp"

namespace troupe::snapshot {
namespace {

using json = nlohmann::ordered_json;

/// Before version 3 a part had the number of its stage only, its contents were not listed, and the partition
/// into stages was part of the identity. Before version 4 the results of calls had other forms, which are not
/// read. Before version 5 the data were not named, or only a stream, as part of the identity. Before version
/// 6 there was a part for each replica, also where they were equal. Before version 7 optimizers counted the
/// steps of the job, not those of each parameter, and the settings were not listed. Before version 8 the
/// results of calls did not say what was asked for.
constexpr int manifest_version = 8;
constexpr int oldest_version = 1;
/// The nesting of a valid manifest: that of a box of a tensor of a part.
constexpr int deepest_nesting = 9;

std::string dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

/// A checksum of the compact JSON form, so that it does not depend on spaces and line ends.
std::string checksum_text(const json& fields) {
  auto text = dump(fields, -1);
  return wire::to_hex(files::checksum_of(std::as_bytes(std::span(text))));
}

/// What is 0 is left out, except for the stage.
json to_json(const manifest_part& part) {
  json fields = {{"stage", part.part.cell.stage}};
  if (part.part.cell.replica != 0) fields["replica"] = part.part.cell.replica;
  if (part.content == layout::replica_content::equal) fields["replicas"] = "equal";
  if (part.part.cell.slice != 0) fields["slice"] = part.part.cell.slice;
  if (part.part.shard != 0) fields["shard"] = part.part.shard;
  fields["file"] = part.file;
  fields["size_bytes"] = part.size_bytes;
  fields["checksum"] = part.checksum;
  fields["host"] = part.host;
  if (part.contents) fields["tensors"] = contents_json(*part.contents);
  return fields;
}

layout::replica_content content_from(const json& fields) {
  if (!fields.contains("replicas")) return layout::replica_content::own;
  auto text = fields.at("replicas").get<std::string>();
  if (text == "equal") return layout::replica_content::equal;
  throw files::snapshot_error("it says '" + text + "' of the replicas of a part where 'equal' is expected");
}

manifest_part part_from(const json& fields) {
  manifest_part part;
  fields.at("stage").get_to(part.part.cell.stage);
  part.part.cell.replica = fields.value("replica", 0);
  part.content = content_from(fields);
  part.part.cell.slice = fields.value("slice", 0);
  part.part.shard = fields.value("shard", 0);
  if (fields.contains("tensors")) part.contents = contents_from_json(fields.at("tensors"));
  fields.at("file").get_to(part.file);
  fields.at("size_bytes").get_to(part.size_bytes);
  fields.at("checksum").get_to(part.checksum);
  fields.at("host").get_to(part.host);
  return part;
}

json to_json(const std::optional<manifest_file>& listed) {
  if (!listed) return nullptr;
  return {{"file", listed->file},
          {"size_bytes", listed->size_bytes},
          {"checksum", listed->checksum},
          {"host", listed->host}};
}

std::optional<manifest_file> file_from(const json& fields) {
  if (fields.is_null()) return {};
  return manifest_file{fields.at("file").get<std::string>(), fields.at("size_bytes").get<std::uint64_t>(),
                       fields.at("checksum").get<std::string>(), fields.at("host").get<std::string>()};
}

json to_json(const snapshot_manifest& manifest) {
  json fields = {{"troupe_snapshot", manifest_version},
                 {"job_id", manifest.job_id},
                 {"step", manifest.step},
                 {"generation", manifest.generation},
                 {"num_stages", manifest.num_stages},
                 {"numeric_class", manifest.numeric_class},
                 {"created", manifest.created},
                 {"identity", json::array()},
                 {"settings", manifest.settings ? json::array() : json(nullptr)},
                 {"data", manifest.data ? json(*manifest.data) : json(nullptr)},
                 {"calls", to_json(manifest.calls)},
                 {"parts", json::array()}};
  for (const auto& [name, value] : manifest.identity)
    fields["identity"].push_back(json::array({name, value}));
  if (manifest.settings)
    for (const auto& [name, value] : *manifest.settings)
      fields["settings"].push_back(json::array({name, value}));
  for (const auto& part : manifest.parts) fields["parts"].push_back(to_json(part));
  return fields;
}

/// Parts are loaded whatever partition the job has that loads them.
bool is_of_partition(const std::pair<std::string, std::string>& option) {
  return option.first == "stages" || option.first == "stages begin with";
}

std::vector<std::pair<std::string, std::string>> pairs_from(const json& fields) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& each : fields)
    pairs.emplace_back(each.at(0).get<std::string>(), each.at(1).get<std::string>());
  return pairs;
}

snapshot_manifest manifest_from(const json& fields) {
  snapshot_manifest manifest;
  fields.at("job_id").get_to(manifest.job_id);
  fields.at("step").get_to(manifest.step);
  fields.at("generation").get_to(manifest.generation);
  fields.at("num_stages").get_to(manifest.num_stages);
  fields.at("numeric_class").get_to(manifest.numeric_class);
  fields.at("created").get_to(manifest.created);
  manifest.identity = pairs_from(fields.at("identity"));
  auto version = fields.at("troupe_snapshot").get<int>();
  if (version < 3) std::erase_if(manifest.identity, is_of_partition);
  if (version == 4) std::erase_if(manifest.identity, [](const auto& each) { return each.first == "stream"; });
  if (version >= 5 && !fields.at("data").is_null()) manifest.data = fields.at("data").get<std::string>();
  if (version >= 4) manifest.calls = file_from(fields.at("calls"));
  manifest.calls_can_be_repeated = version >= 8;
  manifest.counts_steps = version >= 7;
  if (version >= 7 && !fields.at("settings").is_null()) manifest.settings = pairs_from(fields.at("settings"));
  for (const auto& part : fields.at("parts")) manifest.parts.push_back(part_from(part));
  return manifest;
}

void check_version(const json& fields) {
  auto found = fields.at("troupe_snapshot").get<int>();
  if (found < oldest_version || found > manifest_version)
    throw files::snapshot_error("its format version is " + std::to_string(found) +
                                ", but this program reads versions " + std::to_string(oldest_version) +
                                " to " + std::to_string(manifest_version));
}

void check_sum(json& fields) {
  auto expected = fields.at("checksum").get<std::string>();
  fields.erase("checksum");
  auto found = checksum_text(fields);
  if (found != expected)
    throw files::snapshot_error("it is damaged or was edited: checksum " + found + ", expected " + expected);
}

std::string problem_of_parts(const snapshot_manifest& manifest) {
  std::set<int> stages;
  std::vector<layout::part_contents> contents;
  const manifest_part* before = nullptr;
  for (const auto& part : manifest.parts) {
    if (auto expected = part_file_name(part.part); part.file != expected)
      return "it lists " + to_string(part.part) + " in '" + part.file + "' where " + expected +
             " is expected";
    if (before && before->part >= part.part)
      return "it lists " + to_string(part.part) + " after " + to_string(before->part);
    before = &part;
    stages.insert(part.part.cell.stage);
    if (part.contents) contents.push_back({part.part, *part.contents});
  }
  auto num_stages = static_cast<int>(manifest.num_stages);
  if (stages.size() != manifest.num_stages || *stages.begin() != 0 || *stages.rbegin() != num_stages - 1)
    return "it lists parts of " + std::to_string(stages.size()) + " of its " + std::to_string(num_stages) +
           " stages";
  return contents.size() < manifest.parts.size() ? "" : cover_problem(contents);
}

}  // namespace

std::string problem_of(const snapshot_manifest& manifest) {
  if (manifest.num_stages == 0) return "it lists 0 stages, at least 1 is expected";
  if (auto problem = problem_of_parts(manifest); !problem.empty()) return problem;
  if (manifest.calls && manifest.calls->file != calls_file_name)
    return "it lists the results of calls in '" + manifest.calls->file + "' where " +
           std::string(calls_file_name) + " is expected";
  return {};
}

std::string identity_differences(const std::vector<std::pair<std::string, std::string>>& wanted,
                                 const std::vector<std::pair<std::string, std::string>>& found) {
  std::map<std::string, std::string> left(found.begin(), found.end());
  std::string text;
  auto add = [&text](const std::string& difference) { text += (text.empty() ? "" : "; ") + difference; };
  for (const auto& [name, value] : wanted) {
    auto saved = left.extract(name);
    if (saved.empty())
      add(name + " is " + value + ", the snapshot has the default");
    else if (saved.mapped() != value)
      add(name + " is " + value + ", the snapshot has " + saved.mapped());
  }
  for (const auto& [name, saved] : left) add(name + " has the default value, the snapshot has " + saved);
  return text;
}

std::string optimizer_in(const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const auto& [name, value] : settings)
    if (name == "optimizer") return value;
  return {};
}

std::vector<std::string> settings_differences(const std::vector<std::pair<std::string, std::string>>& wanted,
                                              const std::vector<std::pair<std::string, std::string>>& found) {
  bool is_same_optimizer = optimizer_in(wanted) == optimizer_in(found);
  auto is_compared = [&](const std::string& name) {
    return name != "optimizer" && (is_same_optimizer || !name.starts_with("optimizer "));
  };
  std::map<std::string, std::string> left(found.begin(), found.end());
  std::vector<std::string> differences;
  for (const auto& [name, value] : wanted) {
    auto saved = left.extract(name);
    auto before = saved.empty() ? "none" : saved.mapped();
    if (is_compared(name) && before != value)
      differences.push_back(name + " was " + before + " in the snapshot, and is " + value);
  }
  for (const auto& [name, saved] : left)
    if (is_compared(name)) differences.push_back(name + " was " + saved + " in the snapshot, and is none");
  return differences;
}

std::optional<std::chrono::sys_seconds> time_written(const snapshot_manifest& manifest) {
  std::tm fields{};
  const char* end = ::strptime(manifest.created.c_str(), "%Y-%m-%dT%H:%M:%SZ", &fields);
  if (!end || *end != 0) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&fields)));
}

std::string manifest_text(const snapshot_manifest& manifest) {
  auto fields = to_json(manifest);
  fields["checksum"] = checksum_text(fields);
  return dump(fields, 2) + "\n";
}

snapshot_manifest manifest_from_text(std::string_view text) {
  try {
    return json_text::read_json(text, deepest_nesting, [](json fields) {
      check_version(fields);
      check_sum(fields);
      auto manifest = manifest_from(fields);
      if (auto problem = problem_of(manifest); !problem.empty()) throw files::snapshot_error(problem);
      return manifest;
    });
  } catch (const json_text::json_error& problem) {
    throw files::snapshot_error(std::string("it is no manifest: ") + problem.what());
  }
}

std::string numeric_class_problem(const snapshot_manifest& manifest, const std::string& own) {
  if (manifest.numeric_class == own) return {};
  return "the snapshot of step " + std::to_string(manifest.step) + " was computed with the numeric class " +
         manifest.numeric_class + ", these processes have " + own +
         ": continuing from it would not give the bits of its job. Use the version of Troupe, the GPUs "
         "and libraries that wrote it, or start from scratch in another --snapshot-dir";
}

}  // namespace troupe::snapshot
