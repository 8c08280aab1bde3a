#include "snapshot/subcommands.hpp"

#include <iomanip>
#include <iostream>

#include "snapshot/tensor_statistics.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/printable_text.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

void print_as_json(const snapshot::snapshot_manifest& manifest) {
  json object = {{"event", "manifest"},           {"job_id", manifest.job_id},
                 {"step", manifest.step},         {"generation", manifest.generation},
                 {"stages", manifest.num_stages}, {"numeric_class", manifest.numeric_class},
                 {"created", manifest.created},   {"identity", json::object()},
                 {"parts", json::array()}};
  for (const auto& [name, value] : manifest.identity) object["identity"][name] = value;
  if (manifest.data) object["data"] = *manifest.data;
  for (const auto& part : manifest.parts)
    object["parts"].push_back({{"stage", part.part.cell.stage},
                               {"replica", part.part.cell.replica},
                               {"of_all_replicas", part.content == layout::replica_content::equal},
                               {"file", part.file},
                               {"size_bytes", part.size_bytes},
                               {"checksum", part.checksum},
                               {"host", part.host}});
  print_json(object);
}

void print_field(const std::string& name, const std::string& value) {
  std::cout << std::left << std::setw(16) << files::printable(name) << "  " << files::printable(value)
            << '\n';
}

void print_as_text(const snapshot::snapshot_manifest& manifest) {
  print_field("job", manifest.job_id);
  print_field("step", std::to_string(manifest.step));
  print_field("generation", std::to_string(manifest.generation));
  print_field("numeric class", manifest.numeric_class);
  print_field("created", manifest.created);
  for (const auto& [name, value] : manifest.identity) print_field(name, value);
  if (manifest.data) print_field("data", manifest.data->empty() ? "given by the program" : *manifest.data);
  for (const auto& part : manifest.parts)
    print_field(part.file,
                readable_size(part.size_bytes) +
                    (part.content == layout::replica_content::equal ? ", of all replicas, on " : " on ") +
                    part.host + ", BLAKE2b " + part.checksum);
  if (const auto& calls = manifest.calls)
    print_field(calls->file,
                readable_size(calls->size_bytes) + " on " + calls->host + ", BLAKE2b " + calls->checksum);
}

void print_as_json(int stage, const named_tensor& named) {
  auto found = statistics_of(named.value);
  print_json({{"event", "tensor"},
              {"stage", stage},
              {"name", named.name},
              {"dtype", to_string(named.value.dtype())},
              {"shape", named.value.shape().extents()},
              {"min", found.min},
              {"max", found.max},
              {"mean", found.mean},
              {"rms", found.rms},
              {"nan_count", found.num_nan}});
}

void print_header() {
  std::cout << '\n'
            << std::right << std::setw(5) << "stage"
            << "  " << std::left << std::setw(32) << "tensor"
            << "  " << std::setw(20) << "dtype and shape" << std::right;
  for (auto column : {"min", "max", "mean", "rms", "NaN"}) std::cout << ' ' << std::setw(12) << column;
  std::cout << '\n';
}

void print_as_row(int stage, const named_tensor& named) {
  auto found = statistics_of(named.value);
  std::cout << std::right << std::setw(5) << stage << "  " << std::left << std::setw(32)
            << files::printable(named.name) << "  " << std::setw(20) << describe(named.value) << std::right;
  for (auto number : {found.min, found.max, found.mean, found.rms})
    std::cout << ' ' << std::setw(12) << number;
  std::cout << ' ' << std::setw(12) << found.num_nan << '\n';
}

}  // namespace

int show_snapshot(const snapshot_query& query) {
  auto store = open_store(query);
  auto manifest = choose_finished(store, query);
  query.json ? print_as_json(manifest) : print_as_text(manifest);
  if (!query.json) print_header();
  for (const auto& entry : manifest.parts) {
    auto part = store.open_part(manifest, entry.part);
    part.check();
    for (std::size_t tensor = 0; tensor < part.contents().size(); ++tensor) {
      auto named = part.read(tensor);
      query.json ? print_as_json(entry.part.cell.stage, named) : print_as_row(entry.part.cell.stage, named);
    }
  }
  return 0;
}

}  // namespace troupe
