#include "bench/data_parallel/replicated_pipeline.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe::bench {
namespace {

/// The model's batches, as many times one after the other as there are replicas.
class repeated_batches final : public batch_source {
 public:
  repeated_batches(const compute_model& model, int num_replicas) {
    for (std::int64_t number = 0; number < model.inputs.shape()[0]; ++number) {
      auto [inputs, labels] = batch_of(model, static_cast<std::uint64_t>(number));
      auto num_samples = inputs.shape()[0];
      labels = labels.reshape(labels.num_elements() == num_samples
                                  ? shape{num_samples}
                                  : shape{num_samples, labels.num_elements() / num_samples});
      batches_.push_back({repeated(inputs, num_replicas), repeated(labels, num_replicas)});
    }
  }
  std::uint64_t num_steps_per_epoch() const override { return batches_.size(); }
  batch at(std::uint64_t step) override { return batches_[step % batches_.size()]; }

 private:
  static tensor repeated(const tensor& one, int times) {
    auto extents = one.shape().extents();
    auto rows = extents[0];
    extents[0] *= times;
    auto all = tensor::empty(shape(extents), one.dtype());
    for (int i = 0; i < times; ++i) all.rows(i * rows, rows).copy_from(one);
    return all;
  }

  std::vector<batch> batches_;
};

nn::Graph layers_of(const nn::Module& module) {
  if (const auto* gpt = dynamic_cast<const nn::GPT*>(&module)) return nn::gpt_layers(gpt->options());
  return dynamic_cast<const nn::Sequential&>(module);
}

}  // namespace

replicated_pipeline::replicated_pipeline(const compute_model& model, process& self) : self_(self) {
  auto job = std::make_shared<job_definition>();
  job->place(make_plan({.num_replicas = self.world_size()}), self.world_size());
  job->num_threads = num_threads();
  job->snapshots.cadence.memory_every_steps = std::numeric_limits<std::uint32_t>::max();
  auto loss = [moments = moments_](const variable& output, const tensor& targets, double scale) {
    moments->push_back(step_moment::now());
    return nn::CrossEntropy()(output, targets, scale);
  };
  job->make_program =
      make_module_programs(layers_of(*model.module), 1, {.loss = loss, .optimizer = model.optimizer});
  source_ = self_.add_source(std::make_shared<repeated_batches>(model, self_.world_size()));
  self_.define(std::move(job));
}

std::vector<step_moment> replicated_pipeline::run(int count) {
  moments_->clear();
  call_request request;
  request.kind = call_kind::train;
  request.source = source_;
  request.target_step = num_steps_ += static_cast<std::uint64_t>(num_uncounted + count);
  self_.run(request, {});
  // The first of all steps computes the loss more often, to check it.
  return {moments_->end() - (count + 1), moments_->end()};
}

}  // namespace troupe::bench
