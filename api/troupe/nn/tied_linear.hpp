#pragma once
#include <string>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// y = x weight^T, with the weight of a layer before it in the same Sequential or Graph. Gives a language
/// model's logits from its token embedding (Press, Wolf 2017, "Using the Output Embedding to Improve Language
/// Models").
///
///     layers.push_back("wte", Embedding(1000, 64));
///     ...
///     layers.push_back("head", TiedLinear(64, 1000, "wte.weight"));
///
/// Within them it uses the other layer's parameter and has none itself. In a pipeline stage without
/// the owner it has its own parameter "weight" with `tied_to` set, which the stage's program keeps equal to
/// the owner's.
class TiedLinear : public module_of<TiedLinear> {
 public:
  /// `weight_name`: the name, in the Sequential or Graph, of a weight [out_features, in_features].
  TiedLinear(std::int64_t in_features, std::int64_t out_features, std::string weight_name);
  /// A copy belongs to no Sequential or Graph yet.
  TiedLinear(const TiedLinear& other);
  TiedLinear& operator=(const TiedLinear&) = delete;

  variable forward(const variable& input) override;
  void each_parameter(const parameter_visitor& visit) override;
  void tie_weights(const weight_finder& find) override;
  /// The cost of a Linear.
  double cost() const override { return static_cast<double>(weight_.extents.num_elements()); }

 private:
  parameter weight_;
  std::shared_ptr<parameter> owned_elsewhere_;
};

}  // namespace troupe::nn
