#pragma once
#include <concepts>
#include <span>
#include <string_view>
#include <utility>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Throws std::invalid_argument: the operation, and the device that does not have it.
[[noreturn]] void refuse_operation(std::string_view operation, const device& where);

template <class Signature>
class kernel;

/// An entry in the table of a kind of device: the function that computes there, or, as it begins, the name of
/// an operation that this kind of device does not have. Calling the latter throws std::invalid_argument.
template <class Result, class... Arguments>
class kernel<Result(Arguments...)> {
 public:
  // All implicit: tables are lists of names with functions put over them.
  constexpr kernel(const char* operation) : operation_(operation) {}
  constexpr kernel(Result (*function)(Arguments...)) : function_(function) {}
  template <std::convertible_to<Result (*)(Arguments...)> Lambda>
  constexpr kernel(Lambda function) : function_(function) {}

  Result operator()(Arguments... arguments) const {
    if (!function_) {
      device where{device::kind::cuda, 0};
      (look_at(arguments, where), ...);
      refuse_operation(operation_, where);
    }
    return function_(std::forward<Arguments>(arguments)...);
  }

 private:
  template <class Argument>
  static void look_at(const Argument&, device&) {}
  static void look_at(const tensor& argument, device& where) {
    if (argument.defined()) where = argument.device();
  }
  static void look_at(std::span<const tensor> several, device& where) {
    if (!several.empty()) look_at(several.front(), where);
  }
  template <class Slot>
  static void look_at(std::span<const Slot> slots, device& where) {
    if (!slots.empty()) look_at(slots.front().weight, where);
  }

  Result (*function_)(Arguments...) = nullptr;
  const char* operation_ = "";
};

}  // namespace troupe
