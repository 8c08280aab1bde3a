#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "prediction.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/schedule/simulation/measured.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

/// "embed to h.3, head"
std::string layers_on(const prediction& shown, int device) {
  std::string text;
  for (const auto& stage : shown.job.stages) {
    if (stage.device != device) continue;
    const auto& first = shown.profile.layers[static_cast<std::size_t>(stage.first)].name;
    const auto& last = shown.profile.layers[static_cast<std::size_t>(stage.last) - 1].name;
    text += (text.empty() ? "" : ", ") + first + (stage.last - stage.first > 1 ? " to " + last : "");
  }
  return text;
}

double in_kib(std::uint64_t bytes) { return static_cast<double>(bytes) / 1024; }

void print_text(const prediction& shown) {
  const auto& made = shown.job.made;
  auto kind = std::string(to_string(made.kind));
  if (made.mesh.num_replicas > 1) kind += ", each of " + std::to_string(made.mesh.num_replicas) + " replicas";
  std::printf("%s: %s on %s, %s of %s\n", kind.c_str(),
              usage::counted(made.num_stages, "stage", "stages").c_str(),
              usage::counted(made.num_devices(), "device", "devices").c_str(),
              usage::counted(made.num_microbatches, "microbatch", "microbatches").c_str(),
              usage::counted(shown.profile.microbatch_samples, "sample", "samples").c_str());
  auto summary = schedule::summarize(shown.job.ran);
  std::printf("predicted step %.3f ms, idle %.1f %%\n\n", 1e3 * shown.job.ran.makespan,
              100 * summary.bubble_fraction);
  std::printf("%6s  %10s %10s %10s %10s %11s %10s %10s %10s  %9s %6s  %s\n", "device", "parameters",
              "gradients", "optimizer", "buffers", "activations", "messages", "working", "peak KiB",
              "busy ms", "idle %", "layers");
  for (std::size_t device = 0; device < shown.job.memory.size(); ++device) {
    const auto& held = shown.job.memory[device];
    auto idle = shown.job.ran.makespan > 0 ? 100 * summary.idle[device] / shown.job.ran.makespan : 0;
    std::printf("%6zu  %10.1f %10.1f %10.1f %10.1f %11.1f %10.1f %10.1f %10.1f  %9.3f %6.1f  %s\n", device,
                in_kib(held.parameters), in_kib(held.gradients), in_kib(held.optimizer), in_kib(held.buffers),
                in_kib(held.activations), in_kib(held.messages), in_kib(held.working), in_kib(held.peak),
                1e3 * summary.busy[device], idle, layers_on(shown, static_cast<int>(device)).c_str());
  }
  if (!shown.job.links.empty()) std::printf("\n%9s  %12s\n", "link", "KiB a step");
  for (const auto& link : shown.job.links)
    std::printf("%3d -> %2d  %12.1f\n", link.from, link.to, in_kib(link.bytes));
}

constexpr std::array listed_uses = {memory_use::parameters, memory_use::gradients, memory_use::optimizer,
                                    memory_use::activations, memory_use::messages};

void list_actions(const prediction& shown) {
  for (std::size_t device = 0; device < shown.job.memory.size(); ++device) {
    std::printf("\ndevice %zu: KiB held after each action, and at most in it\n%8s", device, "action");
    for (auto use : listed_uses) std::printf(" %11s", std::string(to_string(use)).c_str());
    std::printf(" %11s\n", "peak");
    for (const auto& [op, held, peak] : shown.job.memory[device].ledger) {
      std::printf("%8s", to_string(op).c_str());
      for (auto use : listed_uses)
        std::printf(" %11.1f", static_cast<double>(schedule::of(use, held)) / 1024);
      std::printf(" %11.1f\n", static_cast<double>(peak) / 1024);
    }
  }
}

nlohmann::ordered_json actions_json(const held_memory& held) {
  auto actions = nlohmann::ordered_json::array();
  for (const auto& [op, after, peak] : held.ledger) {
    auto& one = actions.emplace_back(nlohmann::ordered_json{{"action", to_string(op)}});
    for (auto use : listed_uses) one[std::string(to_string(use)) + "_bytes"] = schedule::of(use, after);
    one["peak_bytes"] = peak;
  }
  return actions;
}

void print_json(const plan_request& request, const prediction& shown) {
  auto summary = schedule::summarize(shown.job.ran);
  nlohmann::ordered_json line = {{"schedule", to_string(shown.job.made.kind)},
                                 {"replicas", shown.job.made.mesh.num_replicas},
                                 {"stages", shown.job.made.num_stages},
                                 {"microbatches", shown.job.made.num_microbatches},
                                 {"microbatch_samples", shown.profile.microbatch_samples},
                                 {"step_s", shown.job.ran.makespan},
                                 {"idle", summary.bubble_fraction}};
  line["devices"] = nlohmann::ordered_json::array();
  for (std::size_t device = 0; device < shown.job.memory.size(); ++device) {
    const auto& held = shown.job.memory[device];
    line["devices"].push_back({{"layers", layers_on(shown, static_cast<int>(device))},
                               {"parameter_bytes", held.parameters},
                               {"gradient_bytes", held.gradients},
                               {"optimizer_bytes", held.optimizer},
                               {"buffer_bytes", held.buffers},
                               {"activation_bytes", held.activations},
                               {"message_bytes", held.messages},
                               {"working_bytes", held.working},
                               {"peak_bytes", held.peak},
                               {"busy_s", summary.busy[device]}});
    if (request.list) line["devices"].back()["actions"] = actions_json(held);
  }
  line["links"] = nlohmann::ordered_json::array();
  for (const auto& [from, to, bytes] : shown.job.links)
    line["links"].push_back({{"from", from}, {"to", to}, {"bytes", bytes}});
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

void show(const plan_request& request, const prediction& shown) {
  if (request.map_file) {
    auto text = shown.map.to_yaml();
    try {
      files::write_durably(*request.map_file, std::as_bytes(std::span(text)));
    } catch (const files::snapshot_error& problem) {
      throw bad_input(problem.what());
    }
  }
  if (request.json) return print_json(request, shown);
  print_text(shown);
  if (request.list) list_actions(shown);
}

}  // namespace troupe
