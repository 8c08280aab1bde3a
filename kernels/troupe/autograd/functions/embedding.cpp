#include "troupe/ops/embedding.hpp"

#include <utility>

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

class embedding_operation : public operation {
 public:
  embedding_operation(tensor indices, parameter& weight) : indices_(std::move(indices)), weight_(weight) {}
  std::vector<tensor> backward_input(const tensor&) override { return {}; }
  void backward_weight(const tensor& dy) override {
    auto mode = begin_gradients({&weight_});
    embedding_backward_weight(indices_, dy, weight_.gradient(), mode);
  }
  std::vector<parameter*> parameters() const override { return trainable_parameters({&weight_}); }

 private:
  tensor indices_;
  parameter& weight_;
};

}  // namespace

variable embedding(parameter& weight, const tensor& given) {
  make_ready({&weight});
  auto is_integer = given.dtype() == dtype::i64 || given.dtype() == dtype::i32 || given.dtype() == dtype::u8;
  if (!given.defined() || !is_integer)
    throw_invalid("embedding", "indices of i64, i32 or u8", describe(given));
  auto indices = given.dtype() == dtype::u8 ? cast(given, dtype::i32) : given;
  auto y = embedding_forward(weight.value(), indices);
  if (!would_record({}, {&weight})) return {std::move(y)};
  return record(std::move(y), {}, std::make_unique<embedding_operation>(indices, weight));
}

}  // namespace troupe
