#include <memory>

#include "commands.hpp"
#include "schedule_request.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

// Larger numbers are typing errors; those below 1 are refused with what to give.
constexpr int most_stages = 1 << 20, most_devices = 1 << 16, most_chunks = 1024;

constexpr const char* description = "Draw and simulate a pipeline schedule before running it";

void add_plan_options(CLI::App& command, schedule_request& request) {
  auto* file = command.add_option("--plan", request.plan_file,
                                  "Take the plan from this CSV file, such as PyTorch's pipelining dumps");
  auto* best =
      command.add_flag("--best", request.best,
                       "Choose kind, stages and, with --batch, microbatches for the fastest plan that "
                       "fits into --memory; --stages and --microbatches then say what the costs and "
                       "--memory-per-chunk are of");
  best->excludes(file);
  command
      .add_option("--kind", request.kind,
                  "gpipe, 1f1b, forward_only, interleaved_1f1b, zb_h1, zb_h2, zb_v, dualpipe_v, "
                  "pipedream_2bw or looped_bfs "
                  "(default: 1f1b)")
      ->excludes(file);
  command
      .add_option("--stages", request.stages,
                  "Pipeline stages (default: 4, or what --devices have with the kind: one each, or two)")
      ->check(CLI::Range(-most_stages, most_stages))
      ->excludes(file);
  command.add_option("--microbatches", request.microbatches, "Microbatches of a step")
      ->capture_default_str()
      ->excludes(file);
  command
      .add_option("--flush-every", request.flush_every,
                  "Optimizer steps between two flushes, with pipedream_2bw")
      ->capture_default_str()
      ->excludes(file)
      ->excludes(best);
  command
      .add_option("--replicas", request.replicas,
                  "Copies of the pipeline on as many devices each, whose gradients are added up (G)")
      ->capture_default_str()
      ->excludes(best);
  command
      .add_option("--shard", request.shard,
                  "What replicas divide among themselves: none, optimizer or grad (U), or full (U and S)")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "optimizer", "grad", "full"}))
      ->excludes(best);
  command
      .add_option("--reshard-after", request.reshard_after,
                  "With --shard full: S after each pass, where one of another stage follows, or once a step")
      ->capture_default_str()
      ->check(CLI::IsMember({"pass", "step"}))
      ->excludes(best);
  command
      .add_option("--gather-ahead", request.gather_ahead,
                  "With --shard full: so many passes of its device a U comes before the one that needs it")
      ->capture_default_str()
      ->check(CLI::Range(0, schedule::most_gather_ahead))
      ->excludes(best);
  command
      .add_option(
          "--devices", request.devices,
          "Devices that share the stages (default: one a stage, or one for two with interleaved_1f1b, "
          "zb_v, dualpipe_v and looped_bfs)")
      ->check(CLI::Range(-most_devices, most_devices))
      ->excludes(file);
  command
      .add_option("--batch", request.batch, "Samples of a step: --best takes its divisors as microbatches")
      ->needs(best);
  command.add_option("--most-chunks", request.most_chunks, "Stages of a device at most, with --best")
      ->capture_default_str()
      ->check(CLI::Range(-most_chunks, most_chunks))
      ->needs(best);
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::optional<std::uint64_t>& bytes,
                       const std::string& help) {
  auto store = [name, &bytes](const std::string& text) {
    try {
      bytes = usage::bytes_from(text);
    } catch (const bad_input& problem) {
      throw bad_input(name + ": " + problem.what());
    }
  };
  return command.add_option_function<std::string>(name, store, help)->type_name("BYTES");
}

void add_costs(CLI::App& command, schedule_request& request) {
  auto& costs = request.costs;
  auto add = [&command](const char* name, double& value, const char* text) {
    command.add_option(name, value, text)->capture_default_str();
  };
  add("--cost-f", costs.forward, "Duration of a forward");
  add("--cost-b", costs.input_gradient, "Duration of an input gradient");
  add("--cost-w", costs.weight_gradient, "Duration of a weight gradient");
  add("--cost-a", costs.apply, "Duration of a stage's optimizer step");
  add("--cost-g", costs.all_reduce, "Duration of adding up a stage's gradients over --replicas");
  add("--cost-comm", costs.communication, "Delay between devices");
  add("--transfer-g", costs.sum_transfer,
      "For how long a stage's gradients occupy the link of their device to those of other --replicas");
  add("--transfer-u", costs.unshard_transfer, "The same of a stage's parameters in a U");
  command
      .add_option("--buckets", costs.num_buckets,
                  "In how many parts gradients leave, while the last weight gradient computes them")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--cost-fixed", request.fixed_cost,
                  "Part of the first three that --best takes for the same in smaller stages and microbatches")
      ->capture_default_str()
      ->needs(command.get_option("--best"));
  auto* per_chunk = add_bytes(command, "--memory-per-chunk", request.memory_per_chunk,
                              "Bytes, such as 64M, that a stage keeps of a microbatch for its backward");
  add_bytes(command, "--memory", request.memory,
            "Bytes that each device has for that: refuse what keeps more (with 0, all that keeps any)")
      ->needs(per_chunk);
}

void add_outputs(CLI::App& command, schedule_request& request) {
  command.add_option("--svg", request.svg_file, "Also draw a picture into this file");
  command.add_option("--csv", request.csv_file, "Also write the plan into this file, which PyTorch can load");
  command.add_option("--columns", request.columns, "Width of the drawing (default: the terminal's)");
  command.add_flag("--json", request.json, "Print one line of JSON instead");
  command.add_flag("--list", request.list, "Also print every device's actions, for example 2F0");
}

}  // namespace

void add_schedule_command(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<schedule_request>();
  auto* command = app.add_subcommand("schedule", description);
  add_plan_options(*command, *request);
  add_costs(*command, *request);
  add_outputs(*command, *request);
  command->callback([request, &exit_code] {
    show_plan(*request, requested_plan(*request));
    exit_code = 0;
  });
}

}  // namespace troupe
