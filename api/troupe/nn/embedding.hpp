#pragma once
#include "troupe/nn/init.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// A row of `weight` for each index. Input: i64, i32 or u8 [...], each in [0, num_embeddings); output:
/// [..., features]; weight: [num_embeddings, features], normal with standard deviation 1 unless told
/// otherwise.
class Embedding : public module_of<Embedding> {
 public:
  Embedding(std::int64_t num_embeddings, std::int64_t features, initializer weight_init = init::normal(0, 1));
  variable forward(const variable& input) override;
  void each_parameter(const parameter_visitor& visit) override { visit(weight_); }
  /// For models that tie their output layer to these weights.
  parameter& weight() { return weight_; }

 private:
  parameter weight_;
};

}  // namespace troupe::nn
