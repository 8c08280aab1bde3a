#include "troupe/ops/attention.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"

namespace troupe {
namespace {

class attention_operation : public operation {
 public:
  attention_operation(tensor qkv, attention_result made, const attention_options& options)
      : qkv_(std::move(qkv)), made_(std::move(made)), options_(options) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    return {attention_backward(dy, qkv_, made_.out, made_.log_sum_exp, options_)};
  }

 private:
  tensor qkv_;
  attention_result made_;
  attention_options options_;
};

}  // namespace

variable attention(const variable& input, const attention_options& options) {
  auto qkv = in_compute_dtype(input);
  auto made = attention_forward(qkv.value, options);
  if (!would_record({&qkv})) return {made.out};
  return record(made.out, {qkv}, std::make_unique<attention_operation>(qkv.value, made, options));
}

}  // namespace troupe
