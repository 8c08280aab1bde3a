#pragma once
#include <string>
#include <vector>

#include "troupe/data/dataset.hpp"
#include "troupe/pipeline/pipeline.hpp"

namespace troupe::bench {

/// A model whose layers differ much in cost, and made-up samples for it.
struct uneven_model {
  std::string name;
  Pipeline pipeline;
  dataset_ptr samples;
};

/// - mlp: each layer is half as wide as the one before, from 2048 to 64
/// - cnn: convolutions that shrink a 32 x 32 image, the first the most work by far
/// - gpt: five blocks of width 64 before a head of 4096 tokens (64 times the width; GPT-2 has 65 times)
const std::vector<std::string>& uneven_model_names();
/// With `num_samples` samples. Throws bad_input for another name, with those that there are.
uneven_model make_uneven_model(const std::string& name, std::int64_t num_samples);

}  // namespace troupe::bench
