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

/// A tensor that is learned, and where its gradient accumulates. A parameter may be described (its shape and
/// how it begins) long before it has memory; from `materialize` on the handles stay and only the elements
/// change. A copy has elements and a gradient of its own.
///
/// An update may be pending: what DataParallel and its optimizer have begun and not ended. Modules wait for
/// it in their forward pass; other code calls wait_ready first, or optimizer_state::synchronize for all.
struct parameter {
  parameter() = default;
  parameter(const parameter& other);
  parameter& operator=(const parameter& other);
  parameter(parameter&&) noexcept = default;
  parameter& operator=(parameter&&) noexcept = default;
  ~parameter() = default;
  /// Described: value and gradient are undefined.
  parameter(std::string its_name, shape its_extents, initializer how)
      : name(std::move(its_name)), extents(std::move(its_extents)), begin(std::move(how)) {}
  /// With memory.
  parameter(std::string its_name, tensor its_value, tensor its_gradient)
      : name(std::move(its_name)),
        extents(its_value.shape()),
        value_(std::move(its_value)),
        gradient_(std::move(its_gradient)) {
    value_.count_as(memory_category::parameters);
    gradient_.count_as(memory_category::gradients);
  }

  std::string name;  ///< within its module, for example "weight"
  shape extents;
  initializer begin;              ///< none: zeros
  bool has_gradient = false;      ///< something was added since the optimizer's last step
  std::string same_as;            ///< the full name of another layer's weight that this is a copy of, or none
  bool requires_gradient = true;  ///< false: frozen, it gets no gradient and no optimizer changes it

  /// The value. Throws std::logic_error while an update is pending.
  const tensor& value() const { return no_update_pending().value_; }
  tensor& value() {
    no_update_pending();
    return value_;
  }
  /// f32, of the value's shape; its elements count only if has_gradient. Throws as value() does.
  const tensor& gradient() const { return no_update_pending().gradient_; }
  tensor& gradient() {
    no_update_pending();
    return gradient_;
  }
  /// Returns when no update is pending. Throws what kept the update from ending (collective_error).
  void wait_ready() const {
    if (update_) update_->wait();
  }
  /// For those who carry out an update: the handles while it is pending, and the update itself.
  tensor& value_in_update() { return value_; }
  tensor& gradient_in_update() { return gradient_; }
  void set_update(std::shared_ptr<pending_update> update) { update_ = std::move(update); }

  /// New tensors with initial values, on the CPU; no gradient yet.
  void materialize(std::uint64_t seed, std::string_view full_name);
  /// Moves value and gradient into the memory of `where`; handles to them from before stay behind. Throws
  /// bad_input for a device that is not there, and then changes nothing.
  void move_to(device where);
  /// The value in another floating dtype, converted once and kept until `changed`. Throws as value() does.
  const tensor& as(dtype type) const;
  /// Whether an optimizer's step is to change it.
  bool is_to_step() const { return has_gradient && requires_gradient; }
  /// What `as` keeps; undefined if it keeps nothing.
  const tensor& converted() const { return converted_; }
  /// How often the value was written to. Recorded operations hold it to what it was in forward.
  std::uint64_t version() const { return version_; }
  /// To be called by whoever writes to `value`.
  void changed() {
    converted_ = {};
    ++version_;
  }
  /// To be called by an optimizer that has used the gradient and written to `value`.
  void stepped() {
    has_gradient = false;
    changed();
  }
  /// The same, if the new value was rounded to `converted` in the same pass.
  void stepped_with_converted() {
    has_gradient = false;
    ++version_;
  }

 private:
  const parameter& no_update_pending() const {
    if (update_ && update_->is_pending()) throw_pending();
    return *this;
  }
  [[noreturn]] void throw_pending() const;

  tensor value_;
  tensor gradient_;
  std::shared_ptr<pending_update> update_;  ///< or null
  mutable tensor converted_;
  std::uint64_t version_ = 0;
};

/// Before a forward pass reads parameters: waits for their pending updates. Throws std::logic_error, with the
/// name and what to do, if one has no elements yet. Null pointers are passed over.
void make_ready(std::initializer_list<const parameter*> parameters);

/// How to write to the gradients of these parameters, which all have one afterwards: assign if none had; if
/// some had, the others begin as zeros. Null pointers and frozen parameters are passed over.
gradient_mode begin_gradients(std::initializer_list<parameter*> parameters);

/// Where a parameter's gradient is written to: undefined for a null pointer and for a frozen parameter.
tensor gradient_of(const parameter* which);

/// gradient = or += part, of its shape: what has_gradient asks for.
void add_gradient(parameter& to, const tensor& part);

/// Those that are there and not frozen.
std::vector<parameter*> wanted_of(std::initializer_list<parameter*> parameters);

/// A parameter and its name in the whole model, for example "2.weight". Whoever owns the module keeps it
/// alive.
struct named_parameter {
  std::string name;
  parameter* target = nullptr;
};

}  // namespace troupe
