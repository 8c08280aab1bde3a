#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/autograd/pending_update.hpp"
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Fills a new parameter's value: a pure function of the seed and the parameter's name in the whole model.
using initializer = std::function<void(tensor& value, std::uint64_t seed, std::string_view name)>;

/// A trainable tensor and its gradient. A parameter is first only described (shape and initializer);
/// `materialize` allocates its memory, and from then on the value stays the same tensor and only its elements
/// change, until `detach`. Copies are deep.
///
/// Where others hold the elements meanwhile (shards), the value is detached between its uses and attached for
/// them, and likewise the gradient. What was recorded before stays in date.
///
/// An update may be pending: a gradient reduction or optimizer step that DataParallel has begun. Modules wait
/// for it in their forward pass; other code first calls wait_ready, or optimizer_state::synchronize for all
/// parameters.
struct parameter {
  parameter() = default;
  parameter(const parameter& other);
  parameter& operator=(const parameter& other);
  parameter(parameter&&) noexcept = default;
  parameter& operator=(parameter&&) noexcept = default;
  ~parameter() = default;
  /// A description: value and gradient are undefined.
  parameter(std::string its_name, shape its_extents, initializer its_init)
      : name(std::move(its_name)), extents(std::move(its_extents)), init(std::move(its_init)) {}
  /// A materialized parameter.
  parameter(std::string its_name, tensor its_value, tensor its_gradient)
      : name(std::move(its_name)),
        extents(its_value.shape()),
        value_(std::move(its_value)),
        gradient_(std::move(its_gradient)) {
    value_.set_memory_category(memory_category::parameters);
    gradient_.set_memory_category(memory_category::gradients);
  }

  std::string name;  ///< within its module, for example "weight"
  shape extents;
  initializer init;           ///< fills the initial value; null: zeros
  bool has_gradient = false;  ///< whether a gradient was accumulated since the optimizer's last step
  std::string tied_to;        ///< full name of the weight that this parameter is tied to; empty: none
  /// false: frozen. Operations that are computed meanwhile give it no gradient, also if it is unfrozen before
  /// their backward pass, and optimizers do not change it.
  bool requires_gradient = true;

  /// The value. Throws std::logic_error while an update is pending.
  const tensor& value() const { return no_update_pending().value_; }
  tensor& value() {
    no_update_pending();
    return value_;
  }
  /// f32, of the value's shape; its elements are valid only if has_gradient. Throws as value() does.
  const tensor& gradient() const { return no_update_pending().gradient_; }
  tensor& gradient() {
    no_update_pending();
    return gradient_;
  }
  /// Waits until no update is pending, and until the value is there, where others hold it between its uses.
  /// Throws the error that prevented it (collective_error).
  void wait_ready() const {
    if (update_) update_->wait();
  }
  /// The same for code that does not read the value.
  void wait_update() const {
    if (update_) update_->wait_update();
  }
  /// For code that carries out an update: access to the tensors while it is pending, and the update itself.
  tensor& value_in_update() { return value_; }
  tensor& gradient_in_update() { return gradient_; }
  void set_update(std::shared_ptr<pending_update> update) { update_ = std::move(update); }

  /// Allocates and initializes the tensors, on the CPU; has_gradient is false afterwards.
  void materialize(std::uint64_t seed, std::string_view full_name);
  /// Gives the value memory that holds the elements which it has had; the version stays. Throws
  /// std::invalid_argument for another shape.
  void attach(tensor value);
  /// The same with what `as` returns for its dtype, in place of the value.
  void attach_converted(tensor converted);
  void attach_gradient(tensor gradient);
  /// Lets go of the value's memory and of its conversion. Throws as value() does.
  void detach();
  /// Lets go of the gradient's memory. What accumulates into it next attaches new memory.
  void detach_gradient();
  /// The gradient. If it has no memory, attaches some, of any value: of `gradient_source`, if there is one,
  /// else on the value's device.
  tensor& attached_gradient();
  /// Where the memory of its gradients comes from, f32 of these extents; null: ordinary memory.
  std::function<tensor(shape extents)> gradient_source;
  /// Where the value is, or was before it was detached.
  device place() const;
  /// Whether operations can read it, in the dtype of the value or of its conversion.
  bool is_attached() const { return value_.defined() || converted_.defined(); }
  /// Moves value and gradient to device `target`; earlier handles keep referring to the old memory. Throws
  /// bad_input and changes nothing if the device does not exist.
  void move_to(device target);
  /// The value converted to another floating dtype; cached until mark_changed(). Throws as value() does, and
  /// std::logic_error if it is attached in a third dtype alone.
  const tensor& as(dtype type) const;
  /// Whether the next optimizer step changes it.
  bool needs_step() const { return has_gradient && requires_gradient; }
  /// The conversion cached by as(); undefined if there is none.
  const tensor& converted() const { return converted_; }
  /// Incremented at each change of the value (PyTorch's tensor version). Backward checks that it is unchanged
  /// since forward.
  std::uint64_t version() const { return version_; }
  /// Call after writing to `value`.
  void mark_changed() {
    converted_ = {};
    ++version_;
  }
  /// Called by an optimizer after its step: the gradient is used and the value changed.
  void mark_stepped() {
    has_gradient = false;
    mark_changed();
  }
  /// The same if the step also updated `converted`.
  void mark_stepped_with_converted() {
    has_gradient = false;
    ++version_;
  }

 private:
  void require_shape(const tensor& given) const;
  const parameter& no_update_pending() const {
    if (update_ && update_->is_pending()) throw_pending();
    return *this;
  }
  [[noreturn]] void throw_pending() const;

  tensor value_;
  tensor gradient_;
  std::shared_ptr<pending_update> update_;  ///< the optimizer's step that is still to come; null: none
  mutable tensor converted_;
  device detached_from_;
  std::uint64_t version_ = 0;
};

/// Waits for pending updates before a forward pass reads parameters. Throws std::logic_error, with the name
/// and what to do, if one is not materialized. Null pointers are skipped.
void make_ready(std::initializer_list<const parameter*> parameters);
/// The same for an operation that reads them by `as` alone: their conversions suffice.
void make_ready_to_convert(std::initializer_list<const parameter*> parameters);

/// Prepares the gradients of parameters that an operation computes together, and returns how to write them:
/// `assign` if none has a gradient yet, else `accumulate`, with missing gradients set to zero. Sets
/// has_gradient. Null pointers and frozen parameters are skipped.
gradient_mode begin_gradients(std::initializer_list<parameter*> parameters);

/// The gradient tensor of a parameter; undefined for a null pointer and for a frozen parameter.
tensor gradient_of(const parameter* param);

/// gradient += part if has_gradient, else gradient = part; part has the parameter's shape.
void add_gradient(parameter& to, const tensor& part);

/// The parameters that are neither null nor frozen.
std::vector<parameter*> trainable_parameters(std::initializer_list<parameter*> parameters);

/// A parameter and its name in the whole model, for example "2.weight". Valid while the owning module lives.
struct named_parameter {
  std::string name;
  parameter* target = nullptr;
};

}  // namespace troupe
