#include <memory>

#include "commands.hpp"
#include "snapshot/subcommands.hpp"

namespace troupe {
namespace {

/// Adds a subcommand and returns it with the object that receives its options.
std::pair<CLI::App*, std::shared_ptr<snapshot_query>> add(CLI::App& parent, const std::string& name,
                                                          const std::string& description,
                                                          int (*run)(const snapshot_query&), int& exit_code) {
  auto* command = parent.add_subcommand(name, description);
  // Lives as long as the command, which holds it in its callback.
  auto query = std::make_shared<snapshot_query>();
  command->add_option("DIR", query->folder, "the job's snapshot folder")->required();
  command->add_option("--step", query->step, "only the snapshot of this step");
  command->add_flag("--json", query->json, "print one JSON object per line");
  command->callback([query, run, &exit_code] { exit_code = run(*query); });
  return {command, query};
}

}  // namespace

void add_snapshot_command(CLI::App& app, int& exit_code) {
  auto* snapshot = app.add_subcommand("snapshot", "inspect the snapshots of a job");
  snapshot->require_subcommand(1);
  add(*snapshot, "list", "list the snapshots in the folder, newest first", list_snapshots, exit_code);
  add(*snapshot, "verify", "read every part and name each problem; exit code 1 if the newest is bad",
      verify_snapshots, exit_code);
  add(*snapshot, "show", "show a snapshot's manifest and tensors (the newest unless --step is given)",
      show_snapshot, exit_code);
  auto [command, query] = add(*snapshot, "export", "write a snapshot's weights to a safetensors file",
                              export_snapshot, exit_code);
  command
      ->add_option("--output", query->output,
                   "the file to write, or NAME.safetensors.index.json: the index of several")
      ->required();
  command->add_option("--max-file-size", query->max_file_size,
                      "with an index: the most that each file holds, such as 500M or 2 GiB (5e9 bytes)");
  command->add_flag("--optimizer", query->optimizer, "export the optimizer's state too");
}

}  // namespace troupe
