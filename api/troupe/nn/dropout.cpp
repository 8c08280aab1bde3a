#include "troupe/nn/dropout.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/random/philox.hpp"

namespace troupe::nn {

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p < 1)) throw_invalid("Dropout", "p in [0, 1)", std::to_string(p));
}

void Dropout::on_materialize(std::uint64_t seed, const std::string& prefix) {
  auto hash = hash_of_name(prefix);
  seed_ = seed;
  layer_ = static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

variable Dropout::forward(const variable& input) {
  if (!is_training() || p_ == 0) return input;
  auto id = next_pass_id();
  return dropout(input, p_,
                 philox_stream(seed_, random_purpose::activations, {id.step, id.microbatch, layer_}));
}

}  // namespace troupe::nn
