#include "bench/data_parallel/replica_of_model.hpp"

#include <utility>

#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/pipeline/detail/module_program.hpp"

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

std::vector<step_moment> last_moments(const std::vector<step_moment>& all, int count) {
  return {all.end() - (count + 1), all.end()};
}

program::program_factory make_replica_programs(const compute_model& model, const step_moments& moments,
                                               const replica_form& form) {
  auto loss = [moments](const variable& output, const tensor& targets, double scale) {
    moments->push_back(step_moment::now());
    return nn::CrossEntropy()(output, targets, scale);
  };
  detail::module_program_options options{
      .loss = loss, .optimizer = model.optimizer, .num_shards = form.num_shards};
  options.numerics.shard = form.shard;
  return detail::make_module_programs(layers_of(*model.module), form.num_stages, options);
}

std::shared_ptr<batch_source> make_replica_batches(const compute_model& model, int num_replicas) {
  return std::make_shared<repeated_batches>(model, num_replicas);
}

}  // namespace troupe::bench
