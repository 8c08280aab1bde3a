#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/autograd/variable.hpp"

namespace troupe::nn {

/// A piece of a model. It is made without memory for its parameters, so that describing a model is cheap
/// everywhere; `materialize` gives it weights in the process that runs it.
class Module {
 public:
  virtual ~Module() = default;

  /// The output for `input`, recorded on the input's tape if it has one.
  virtual variable forward(const variable& input) = 0;

  /// A module of its own with the same structure. Materialize it before use: until then it may share
  /// parameters with this one.
  virtual std::shared_ptr<Module> clone() const = 0;

  /// Allocates parameters and zero gradients, and fills the parameters with initial weights that depend on
  /// nothing but the seed and `prefix` + the parameter's name. New tensors each time.
  virtual void materialize(std::uint64_t /*seed*/, const std::string& /*prefix*/) {}

  /// Known before materializing.
  virtual std::int64_t num_parameters() const { return 0; }

  /// Estimated multiply-adds per sample of one forward, by which a model is cut into stages.
  virtual double cost() const { return static_cast<double>(num_parameters()); }

  /// The parameters with `prefix` before their names, in the order of the forward pass. The pointers are good
  /// as long as the module lives.
  std::vector<named_parameter> named_parameters(const std::string& prefix = {});
  std::vector<parameter*> parameters();

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;

 private:
  friend class Sequential;
  /// Appends this module's parameters, names beginning with `prefix`.
  virtual void collect_parameters(const std::string& /*prefix*/, std::vector<named_parameter>& /*into*/) {}
};

}  // namespace troupe::nn
