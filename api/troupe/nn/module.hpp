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

/// A tensor of a module that is not trained, such as a running mean. Copies are deep.
struct buffer {
  buffer(std::string its_name, shape its_extents, float begins = 0)
      : name(std::move(its_name)), extents(std::move(its_extents)), initial_value(begins) {}
  buffer(const buffer& other);
  buffer& operator=(const buffer& other) { return *this = buffer(other); }
  buffer(buffer&&) noexcept = default;
  buffer& operator=(buffer&&) noexcept = default;
  ~buffer() = default;

  std::string name;  ///< name within its module, for example "weight"
  shape extents;
  float initial_value = 0;
  tensor value;  ///< f32, undefined until the module is materialized
};

/// A buffer and its name in the whole model.
struct named_buffer {
  std::string name;
  buffer* target = nullptr;
};

/// A part of a model. Construction allocates no memory for parameters, so that every process can describe the
/// whole model; `materialize` allocates the weights in the process that runs the module.
///
/// A user-defined module has parameters, buffers and child modules as members, lists them in each_parameter,
/// each_buffer and each_child, and implements `forward`; the base class `module_of` implements `clone`.
///
/// Modules are values: a copy (by value or `clone`) is deep and independent of the original. A class that
/// holds children by pointer must clone them in its copy constructor, as Checkpoint does; otherwise `clone`
/// throws. To share a module, share a std::shared_ptr to it.
class Module {
 public:
  virtual ~Module() = default;

  /// Computes the output for `input`, and records it for backward if a gradient is required.
  virtual variable forward(const variable& input) = 0;
  /// Calls forward. An error names this module unless it already names one within it: "in layer
  /// blocks.3.mlp.0: ...".
  variable operator()(const variable& input);
  /// A deep copy. Throws std::logic_error, with a name, if the copy would share a child, parameter or buffer.
  virtual std::shared_ptr<Module> clone() const = 0;

  /// Allocates parameters and buffers and initializes them; the values depend only on the seed and `prefix` +
  /// name. Allocates new tensors at each call. Throws as named_parameters does.
  void materialize(std::uint64_t seed, const std::string& prefix = {});
  /// The same for models that no process holds whole: calls `on_parameter` with each parameter when it has
  /// its values, which may take them away before the next one gets memory.
  void materialize(std::uint64_t seed, const std::string& prefix,
                   const std::function<void(const named_parameter&)>& on_parameter);
  /// The module's full name, as set by materialize: "blocks.3.mlp.0"; empty before, and for the whole model
  /// itself.
  const std::string& path() const { return path_; }

  /// Moves the parameters, gradients and buffers of a materialized module to device `target`; inputs of
  /// forward must be there too. Call it before creating an optimizer's state. Throws bad_input if the device
  /// does not exist.
  void to(device target);

  /// Available before materialize.
  std::int64_t num_parameters() const;
  /// The number of elements of the parameters that are not frozen.
  std::int64_t num_trainable_parameters() const;
  /// Estimated multiply-adds per sample of a forward pass, used to partition a model into stages.
  virtual double cost() const;

  /// All parameters and buffers with names prefixed by `prefix`: this module's own first, then its
  /// children's. The pointers are valid while the module lives. Throw std::invalid_argument if two have the
  /// same name, or one is listed twice.
  std::vector<named_parameter> named_parameters(const std::string& prefix = {});
  std::vector<named_buffer> named_buffers(const std::string& prefix = {});
  std::vector<parameter*> parameters();

  /// Handles to the values of parameters and buffers, by name.
  std::vector<named_tensor> state_dict(const std::string& prefix = {});
  /// Copies values into a materialized module, as copy_by_name does. Throws std::runtime_error and changes
  /// nothing if a tensor has another shape or dtype, or, unless {.strict = false}, is missing or unexpected.
  /// PyTorch's counts of a batch norm's batches (num_batches_tracked) are skipped.
  unmatched_names load_state_dict(const std::vector<named_tensor>& saved, copy_by_name_options options = {});

  /// Switches this module and its children to training mode (the default) or evaluation mode, which changes
  /// dropout and batch norm. Each module has a mode of its own, which copies, evaluations, pipelines and
  /// their snapshots keep: a batch norm in evaluation mode stays so while the others train.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  /// Drops the gradients of all parameters (PyTorch's zero_grad, which sets them to none): the next backward
  /// pass begins anew instead of adding to them, and optimizers do not step a parameter without a gradient.
  void zero_grad();
  /// Lets all parameters be trained, or freezes them (PyTorch's requires_grad_): operations that are computed
  /// while a parameter is frozen give it no gradient, and optimizers do not change it. A gradient that it has
  /// waits until it is unfrozen. Sets parameter::requires_gradient, which freezes a single one.
  void requires_gradient(bool required = true);
  void freeze() { requires_gradient(false); }

  using parameter_visitor = std::function<void(parameter&)>;
  /// Finds the parameter with this full name in a preceding layer; null if there is none.
  using weight_finder = std::function<std::shared_ptr<parameter>(const std::string& name)>;
  /// Called when a Sequential or Graph adds this module; a layer with tied weights looks up the owner's
  /// parameter here.
  virtual void tie_weights(const weight_finder& /*find*/) {}

  using buffer_visitor = std::function<void(buffer&)>;
  using child_visitor = std::function<void(const std::string& name, Module& child)>;
  /// Visit the module's own parameters, buffers and children, in the order of the forward pass. The
  /// parameters of a child with an empty name are named as if they were this module's own.
  virtual void each_parameter(const parameter_visitor& /*visit*/) {}
  virtual void each_buffer(const buffer_visitor& /*visit*/) {}
  virtual void each_child(const child_visitor& /*visit*/) {}

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;

  /// For implementations of `clone`: throws std::logic_error, naming it, if this module shares a child,
  /// parameter or buffer with `original`.
  void require_own_parts(const Module& original) const;
  /// For implementations of `clone`: takes the modes of `original` and of all within it, which a copy
  /// constructor of one's own may have left out.
  void copy_modes(const Module& original);

  /// Called by materialize before it materializes the children, for state that depends on the module's name.
  virtual void on_materialize(std::uint64_t /*seed*/, const std::string& /*prefix*/) {}

 private:
  friend class evaluation_scope;
  void collect(const std::string& prefix, std::vector<named_parameter>& into);
  void collect(const std::string& prefix, std::vector<named_buffer>& into);
  void fill(std::uint64_t seed, const std::string& prefix,
            const std::function<void(const named_parameter&)>& on_parameter);

  bool training_ = true;
  std::string path_;
};

/// CRTP base of modules; implements `clone` with the copy constructor: class Mine : public module_of<Mine>
/// ...
template <class Derived>
class module_of : public Module {
 public:
  std::shared_ptr<Module> clone() const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    auto& as_base = static_cast<module_of&>(*copy);
    as_base.require_own_parts(*this);
    as_base.copy_modes(*this);
    return copy;
  }
};

}  // namespace troupe::nn
