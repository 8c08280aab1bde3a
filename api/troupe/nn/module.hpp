#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/autograd/variable.hpp"
#include "troupe/ops/copy_by_name.hpp"

namespace troupe::nn {

/// A tensor that a module keeps but no optimizer learns, such as a running mean. A copy has
/// elements of its own.
struct buffer {
  buffer(std::string its_name, shape its_extents, float begins = 0)
      : name(std::move(its_name)), extents(std::move(its_extents)), begins_with(begins) {}
  buffer(const buffer& other);
  buffer& operator=(const buffer& other) { return *this = buffer(other); }
  buffer(buffer&&) noexcept = default;
  buffer& operator=(buffer&&) noexcept = default;
  ~buffer() = default;

  std::string name;  ///< within its module
  shape extents;
  float begins_with = 0;
  tensor value;  ///< f32, undefined until the module is materialized
};

/// A buffer and its name in the whole model.
struct named_buffer {
  std::string name;
  buffer* target = nullptr;
};

/// A piece of a model. It is made without memory for its parameters, so that describing a model is cheap
/// everywhere; `materialize` gives it weights in the process that runs it.
///
/// A module of one's own has parameters, buffers and other modules as members, names them in each_parameter,
/// each_buffer and each_child, and computes in `forward`; `module_of` below writes `clone`.
///
/// Modules are values: a copy, by value or by `clone`, has the same structure, elements and gradients in
/// tensors of its own, and what is done to one never shows in the other. A class that holds children by
/// pointer clones them in its copy constructor, as Checkpoint does; `clone` refuses one that does not. To
/// share a module, share a std::shared_ptr to it.
class Module {
 public:
  virtual ~Module() = default;

  /// The output for `input`, recorded if a gradient is wanted.
  virtual variable forward(const variable& input) = 0;
  /// The same. An error names this module if none within it is named: "in layer blocks.3.mlp.0: ...".
  variable operator()(const variable& input);
  /// A copy. Throws std::logic_error, with a name, if it would share a child, parameter or buffer.
  virtual std::shared_ptr<Module> clone() const = 0;

  /// Allocates parameters and buffers, and fills them with initial values that depend on nothing but the seed
  /// and `prefix` + the name of each. New tensors each time. Throws as named_parameters does.
  void materialize(std::uint64_t seed, const std::string& prefix = {});
  /// The module's name in the whole model, as materialize was told: "blocks.3.mlp.0"; empty before, and in
  /// the whole model itself.
  const std::string& path() const { return path_; }

  /// Moves parameters, their gradients and buffers of a materialized module into the memory of `where`, and
  /// with them the computing: inputs must lie there too. Before an optimizer's state is made for them. Throws
  /// bad_input for a device that is not there.
  void to(device where);

  /// Known before materializing.
  std::int64_t num_parameters() const;
  /// Estimated multiply-adds per sample of one forward, by which a model is cut into stages.
  virtual double cost() const;

  /// With `prefix` before their names, this module's own first, then its children's. The pointers are good as
  /// long as the module lives. Throw std::invalid_argument where two have one name, and where one has two.
  std::vector<named_parameter> named_parameters(const std::string& prefix = {});
  std::vector<named_buffer> named_buffers(const std::string& prefix = {});
  std::vector<parameter*> parameters();

  /// Live handles to parameters and buffers, by name.
  std::vector<named_tensor> state_dict(const std::string& prefix = {});
  /// Copies elements into a materialized module, as copy_by_name does: throws std::runtime_error, and changes
  /// nothing, if a tensor does not fit, or, unless {.strict = false}, is missing or unknown.
  unmatched_names load_state_dict(const std::vector<named_tensor>& saved, copy_by_name_options options = {});

  /// Training (from the start) or evaluation: what dropout and batch norm do. For the children too.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  using parameter_visitor = std::function<void(parameter&)>;
  /// The parameter of this full name in a layer before, or null.
  using weight_finder = std::function<std::shared_ptr<parameter>(const std::string& name)>;
  /// Told by the Sequential that takes this module: the place to take over another layer's weight.
  virtual void use_weights_of(const weight_finder& /*find*/) {}

  using buffer_visitor = std::function<void(buffer&)>;
  using child_visitor = std::function<void(const std::string& name, Module& child)>;
  /// Names the module's own parameters, buffers and children, in the order of the forward pass. A child
  /// without a name ("") has the names that its parameters would have in this module.
  virtual void each_parameter(const parameter_visitor& /*visit*/) {}
  virtual void each_buffer(const buffer_visitor& /*visit*/) {}
  virtual void each_child(const child_visitor& /*visit*/) {}

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;

  /// For whoever writes `clone`: throws std::logic_error, naming it, if a part of this module is a part of
  /// `original` too.
  void require_own_parts(const Module& original) const;

  /// Called by materialize before the children's turn, for what depends on the module's name.
  virtual void on_materialize(std::uint64_t /*seed*/, const std::string& /*prefix*/) {}

 private:
  void collect(const std::string& prefix, std::vector<named_parameter>& into);
  void collect(const std::string& prefix, std::vector<named_buffer>& into);
  void fill(std::uint64_t seed, const std::string& prefix);

  bool training_ = true;
  std::string path_;
};

/// A base for modules that are copied by their copy constructor: class Mine : public module_of<Mine> ...
template <class Derived>
class module_of : public Module {
 public:
  std::shared_ptr<Module> clone() const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    static_cast<const module_of&>(*copy).require_own_parts(*this);
    return copy;
  }
};

}  // namespace troupe::nn
