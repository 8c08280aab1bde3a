#include "snapshot/subcommands.hpp"

#include <iostream>
#include <map>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/snapshot/saved_tensors.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {

namespace {

std::uint64_t file_bytes_of(const snapshot_query& query) {
  if (query.max_file_size.empty()) return usual_file_bytes;
  if (!is_safetensors_index(query.output))
    throw bad_input(
        "--max-file-size is for a model in several files: name their index with --output, such as "
        "model.safetensors.index.json");
  auto bytes = usage::bytes_from(query.max_file_size);
  if (bytes == 0)
    throw bad_input("--max-file-size: expected more than 0 bytes, got '" + query.max_file_size + "'");
  return bytes;
}

}  // namespace

int export_snapshot(const snapshot_query& query) {
  auto max_file_bytes = file_bytes_of(query);
  auto store = open_store(query);
  auto manifest = choose_finished(store, query);
  auto tensors = saved_tensors(store, manifest,
                               query.optimizer ? snapshot::saved_part::all : snapshot::saved_part::weights);
  // Programs of others refuse weights whose format is not "pt", the names and layout of PyTorch.
  std::map<std::string, std::string> metadata{
      {"format", "pt"}, {"job", manifest.job_id}, {"step", std::to_string(manifest.step)}};
  if (is_safetensors_index(query.output))
    write_sharded_safetensors(query.output, tensors, max_file_bytes, metadata);
  else
    write_safetensors(query.output, tensors, metadata);
  if (query.json)
    print_json({{"event", "exported"},
                {"file", query.output.string()},
                {"step", manifest.step},
                {"tensors", tensors.size()}});
  else
    std::cout << tensors.size() << " tensors of step " << manifest.step << " written to "
              << query.output.string() << '\n';
  return 0;
}

}  // namespace troupe
