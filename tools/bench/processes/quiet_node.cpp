#include "bench/processes/quiet_node.hpp"

#include <spdlog/sinks/stdout_sinks.h>

namespace troupe::bench {
namespace {

class same_batches final : public batch_source {
 public:
  explicit same_batches(int num_microbatches)
      : samples_{tensor::zeros({num_microbatches, 1}, dtype::u8),
                 tensor::zeros({num_microbatches, 1}, dtype::u8)} {}
  std::uint64_t num_steps_per_epoch() const override { return 1; }
  batch at(std::uint64_t) override { return samples_; }

 private:
  batch samples_;
};

std::unique_ptr<node> start_node(std::optional<launch_environment> launch) {
  node_options made;
  made.launch = std::move(launch);
  made.numeric_class = "none";  // nothing is computed
  made.log = std::make_shared<spdlog::logger>("troupe", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  made.log->set_level(spdlog::level::warn);
  return node::start(made);
}

}  // namespace

std::unique_ptr<node> start_local_node() { return start_node({}); }

std::unique_ptr<node> start_launched_node() {
  return start_node(read_launch_environment(process_environment()));
}

std::shared_ptr<batch_source> make_same_batches(int num_microbatches) {
  return std::make_shared<same_batches>(num_microbatches);
}

call_result train_steps(node& self, std::shared_ptr<const job_definition> job, std::uint64_t num_steps) {
  auto num_microbatches = job->training.num_microbatches;
  self.define(std::move(job));
  call_request request;
  request.kind = call_kind::train;
  request.source = self.add_source(make_same_batches(num_microbatches));
  request.target_step = num_steps;
  return self.run(request, {});
}

}  // namespace troupe::bench
