#include "bench/processes/bench_process.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <numeric>
#include <utility>

namespace troupe::bench {
namespace {

class constant_source final : public batch_source {
 public:
  explicit constant_source(batch samples) : batch_(std::move(samples)) {}
  std::uint64_t num_steps_per_epoch() const override { return 1; }
  batch at(std::uint64_t) override { return batch_; }

 private:
  batch batch_;
};

std::unique_ptr<actors::process::process> start_process(std::optional<launch_environment> launch,
                                                        transport::send_delay_ptr delay = nullptr) {
  actors::process::process_options options;
  options.launch = std::move(launch);
  options.delay = std::move(delay);
  options.numeric_class = "none";  // nothing is computed
  options.log = std::make_shared<spdlog::logger>("troupe", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  options.log->set_level(spdlog::level::warn);
  return actors::process::process::start(options);
}

}  // namespace

std::unique_ptr<actors::process::process> start_local_process() { return start_process({}); }

std::unique_ptr<actors::process::process> start_launched_process(transport::send_delay_ptr delay) {
  return start_process(read_launch_environment(process_environment()), std::move(delay));
}

group_description all_ranks(const actors::process::process& self, const std::string& name) {
  group_description group{name, std::vector<world_rank>(static_cast<std::size_t>(self.world_size())),
                          self.rank()};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

std::shared_ptr<batch_source> make_constant_source(batch samples) {
  return std::make_shared<constant_source>(std::move(samples));
}

actors::job::call_result train_steps(actors::process::process& self,
                                     std::shared_ptr<const actors::job::job_definition> job,
                                     std::uint64_t num_steps, const batch& samples) {
  auto nothing = tensor::zeros({job->training.num_microbatches, 1}, dtype::u8);
  actors::job::call_request request;
  request.kind = actors::job::call_kind::train;
  request.source =
      self.add_source(make_constant_source(samples.inputs.defined() ? samples : batch{nothing, nothing}));
  request.target_step = num_steps;
  self.define(std::move(job));
  return self.run(request, {});
}

}  // namespace troupe::bench
