#include "troupe/autograd/checkpoint.hpp"

#include <optional>
#include <utility>

#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/pass_place.hpp"

namespace troupe {
namespace {

class checkpoint_operation : public operation {
 public:
  checkpoint_operation(std::function<variable(const variable&)> segment, tensor x, bool input_wanted,
                       std::vector<parameter*> parameters, pass_position position)
      : segment_(std::move(segment)),
        x_(std::move(x)),
        input_wanted_(input_wanted),
        parameters_(std::move(parameters)),
        position_(position) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    auto input = input_wanted_ ? leaf(x_) : variable{x_, nullptr};
    {
      enable_grad recording;
      pass_scope repeated(position_);
      again_.emplace(segment_(input));
    }
    again_->run_inputs(dy);
    return {input.gradient()};
  }
  void backward_weight(const tensor&) override {
    again_->run_weights();
    again_.reset();
  }
  std::vector<parameter*> parameters() const override { return parameters_; }
  void release_inputs() override { x_ = {}; }

 private:
  std::function<variable(const variable&)> segment_;
  tensor x_;
  bool input_wanted_;
  std::vector<parameter*> parameters_;
  pass_position position_;  ///< where the segment drew its random numbers
  std::optional<backward_pass> again_;
};

}  // namespace

variable checkpoint(std::function<variable(const variable&)> segment, const variable& x,
                    std::vector<parameter*> parameters) {
  auto position = current_pass();
  tensor value;
  {
    no_grad nothing_recorded;
    value = segment(x).value;
  }
  std::erase_if(parameters, [](const auto* each) { return !each->requires_gradient; });
  auto wanted = x.requires_gradient();
  return record(std::move(value), {x},
                std::make_unique<checkpoint_operation>(std::move(segment), x.value, wanted,
                                                       std::move(parameters), position));
}

}  // namespace troupe
