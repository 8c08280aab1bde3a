#include "snapshot/subcommands.hpp"

#include <iostream>

#include "troupe/safetensors/safetensors.hpp"
#include "troupe/snapshot/saved_tensors.hpp"

namespace troupe {

int export_snapshot(const snapshot_query& query) {
  auto store = open_store(query);
  auto manifest = choose_finished(store, query);
  auto tensors = saved_tensors(store, manifest,
                               query.optimizer ? snapshot::saved_part::all : snapshot::saved_part::weights);
  // Programs of others refuse weights whose format is not "pt", the names and layout of PyTorch.
  write_safetensors(query.output, tensors,
                    {{"format", "pt"}, {"job", manifest.job_id}, {"step", std::to_string(manifest.step)}});
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
