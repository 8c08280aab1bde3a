#include "troupe/nn/embedding.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::nn {

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t features, initializer weight_init) {
  if (num_embeddings < 1 || features < 1)
    throw_invalid("Embedding", "at least one embedding and feature",
                  std::to_string(num_embeddings) + " embeddings of " + std::to_string(features));
  weight_ = parameter("weight", {num_embeddings, features}, std::move(weight_init));
}

variable Embedding::forward(const variable& input) { return embedding(weight_, input.value); }

}  // namespace troupe::nn
