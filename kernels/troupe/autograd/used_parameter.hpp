#pragma once
#include "troupe/autograd/parameter.hpp"

namespace troupe {

/// A parameter whose value a recorded operation's backward reads, and which has to be then what it was in
/// forward.
class used_parameter {
 public:
  /// Null: none, with an undefined value.
  explicit used_parameter(parameter* which) : target_(which), version_(ready_version(which)) {}

  parameter* target() const { return target_; }
  /// Throws std::logic_error, with the parameter's name, if it was written to since.
  void require_unchanged() const {
    if (target_ && target_->version() != version_) throw_changed();
  }
  /// The value, in a dtype of choice; throws as require_unchanged does.
  tensor value() const;
  const tensor& as(dtype type) const;

 private:
  /// Waits for a pending update first.
  static std::uint64_t ready_version(const parameter* which);
  [[noreturn]] void throw_changed() const;

  parameter* target_;
  std::uint64_t version_;
};

}  // namespace troupe
