// What a user writes about a job: plans, cost profiles, device maps and configuration files. The first byte
// chooses.
#include <algorithm>
#include <array>

#include "fuzz/fuzzer.hpp"
#include "troupe/config/job_fields.hpp"
#include "troupe/config/yaml_settings.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/pipeline/device_map.hpp"
#include "troupe/placement/cost_profile.hpp"
#include "troupe/placement/layer_map.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/schedule/text/plan_csv.hpp"
#include "troupe/schedule/text/plan_text.hpp"

namespace troupe::fuzz {
namespace {

using input = std::span<const std::byte>;

std::size_t num_actions(const plan& of) {
  std::size_t number = 0;
  for (const auto& device : of.devices) number += device.size();
  return number;
}

void try_plan(input bytes) {
  constexpr std::size_t most_simulated = 1000;
  allow<bad_input>([&] {
    auto read = schedule::read_plan_csv(text_of(bytes), "plan.csv");
    expect(schedule::check_plan(read).empty(), "a plan was read that is not sound");
    expect(schedule::plan_text(schedule::read_plan_csv(schedule::to_csv(read), "plan.csv")) ==
               schedule::plan_text(read),
           "a plan is read back as another one");
    if (num_actions(read) > most_simulated) return;
    auto ran = simulate(read, {});
    expect(ran.makespan > 0 && ran.devices.size() == read.devices.size(), "a plan takes no time");
  });
}

std::vector<std::string> plan_seeds() {
  std::vector<std::string> made;
  for (auto kind : {schedule_kind::one_f_one_b, schedule_kind::interleaved_1f1b, schedule_kind::zb_v,
                    schedule_kind::forward_only})
    made.push_back(schedule::to_csv(make_plan(
        {.kind = kind, .num_stages = 2 * usual_chunks(kind), .num_microbatches = 4, .num_devices = 2})));
  made.push_back(schedule::to_csv(make_plan({.kind = schedule_kind::pipedream_2bw,
                                             .num_stages = 2,
                                             .num_microbatches = 2,
                                             .num_devices = 2,
                                             .flush_every = 3})));
  made.push_back("# ranks\n0F0,\"0SEND_F0\",(0F1;0B0)OVERLAP_F_B,,0I1,0W1\r\n\n");
  return made;
}

void try_action(input bytes) {
  allow<bad_input>([&] {
    auto op = action_from(text_of(bytes));
    expect(action_from(to_string(op)) == op, "an action is read back as another one");
  });
}

std::vector<std::string> action_seeds() { return {"2F0", "0W12", "1A", "1A3", "0R1", "3G"}; }

void try_profile(input bytes) {
  allow<bad_input>([&] {
    auto profile = profile_from_json(text_of(bytes));
    expect(profile_from_json(to_json(profile)) == profile, "a profile is read back as another one");
  });
}

std::vector<std::string> profile_seeds() {
  return {to_json({.microbatch_samples = 32,
                   .layers = {{.name = "a", .forward_s = 0.1, .parameter_bytes = 5, .optimizer_bytes = 7},
                              {.name = "b",
                               .input_gradient_s = 2,
                               .parameter_bytes = 5,
                               .optimizer_bytes = 6,
                               .passes = {10, 11, -12, 13, -14, 15}}},
                   .values = {{layer_value::model_input, 0, 0, 10}, {0, 1, 1, 11}},
                   .shared = {{0, 1, 5, 6}}})};
}

void try_layer_map(input bytes) {
  const std::vector<std::string> names = {"embed", "blocks.0", "blocks.1", "blocks.10", "head"};
  allow<bad_input>([&] {
    auto layers = std::string(text_of(bytes));
    auto devices = devices_of_layers({{layers, 0}, {"head", 1}}, names);
    expect(devices.size() == names.size(), "a layer has no device");
  });
}

std::vector<std::string> layer_map_seeds() { return {"blocks", "blocks.0..2", "embed", "0..3"}; }

void try_device_map(input bytes) {
  allow<bad_input>([&] {
    auto read = DeviceMap::read(inputs().write("map.yaml", text_of(bytes)));
    auto again = DeviceMap::read(inputs().write("map.yaml", read.to_yaml()));
    expect(again.to_yaml() == read.to_yaml(), "a device map is read back as another one");
  });
}

std::vector<std::string> device_map_seeds() {
  auto map = DeviceMap().layer("embed", 0).layers("transformer.0..12", 1).layer("a: \"name\"\n", 0);
  return {map.to_yaml(), "%YAML 1.2\n---\n{version: 1, ? &a 'head' : !!int 0, \"\\x41\\u00e9\": *a}\n"};
}

/// The fields that were set are written again, a line each.
std::string written(const job_options& options) {
  std::string text;
  for (const auto& name : options.given)
    text += name + ": " + config::yaml_key(config::find_job_field(name)->text(options)) + "\n";
  return text;
}

void try_job(input bytes) {
  allow<bad_input>([&] {
    job_options options, again;
    apply_yaml(inputs().write("job.yaml", text_of(bytes)), options);
    apply_yaml(inputs().write("job.yaml", written(options)), again);
    expect(written(again) == written(options), "options are read back as others");
    check_options(options);
  });
}

std::vector<std::string> job_seeds() {
  std::string all;
  for (const auto& field : config::job_fields())
    all += std::string(field.name) + ": " + config::yaml_key(field.text(job_options())) + "\n";
  return {all, "batch: 64\nmicrobatches: 4 # of each step\nschedule: zb_v\ngrace: 1.5m\n"};
}

constexpr std::array decoders = {decoder{try_plan, plan_seeds},
                                 decoder{try_action, action_seeds},
                                 decoder{try_profile, profile_seeds},
                                 decoder{try_layer_map, layer_map_seeds},
                                 decoder{try_device_map, device_map_seeds},
                                 decoder{try_job, job_seeds}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
