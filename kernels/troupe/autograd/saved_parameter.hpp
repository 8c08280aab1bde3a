#pragma once
#include "troupe/autograd/parameter.hpp"

namespace troupe {

/// A parameter whose value the backward of a recorded operation reads; checks that the value has not changed
/// since forward (PyTorch's SavedVariable).
class saved_parameter {
 public:
  /// A null pointer gives an undefined value.
  explicit saved_parameter(parameter* param) : target_(param), version_(ready_version(param)) {}

  parameter* target() const { return target_; }
  /// Throws std::logic_error, with the parameter's name, if its value has changed since construction.
  void require_unchanged() const {
    if (target_ && target_->version() != version_) throw_changed();
  }
  /// The value, or its conversion to `type`. Wait as wait_ready does; throw as require_unchanged does, and
  /// std::logic_error for a parameter that is detached.
  tensor value() const;
  const tensor& as(dtype type) const;

 private:
  /// Waits for a pending update first, but not for the value: the operation has it, or will ask for it.
  static std::uint64_t ready_version(const parameter* param);
  void require_ready() const;
  [[noreturn]] void throw_detached() const;
  [[noreturn]] void throw_changed() const;

  parameter* target_;
  std::uint64_t version_;
};

}  // namespace troupe
