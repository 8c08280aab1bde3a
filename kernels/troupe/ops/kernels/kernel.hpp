#pragma once
#include <concepts>
#include <span>
#include <string_view>
#include <utility>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Throws std::invalid_argument: the device does not support the operation.
[[noreturn]] void refuse_operation(std::string_view operation, const device& target);

template <class Signature>
class kernel;

/// An entry of a kernel table: a function, or initially only the name of an operation that the device does
/// not support. Calling an entry without function throws std::invalid_argument.
template <class Result, class... Arguments>
class kernel<Result(Arguments...)> {
 public:
  // Implicit, so that tables can be initialised with functions.
  constexpr kernel(const char* operation) : operation_(operation) {}
  constexpr kernel(Result (*function)(Arguments...)) : function_(function) {}
  template <std::convertible_to<Result (*)(Arguments...)> Lambda>
  constexpr kernel(Lambda function) : function_(function) {}

  Result operator()(Arguments... arguments) const {
    if (!function_) {
      device target{device::kind::cuda, 0};
      (find_device(arguments, target), ...);
      refuse_operation(operation_, target);
    }
    return function_(std::forward<Arguments>(arguments)...);
  }

 private:
  template <class Argument>
  static void find_device(const Argument&, device&) {}
  static void find_device(const tensor& argument, device& target) {
    if (argument.defined()) target = argument.device();
  }
  static void find_device(std::span<const tensor> several, device& target) {
    if (!several.empty()) find_device(several.front(), target);
  }
  template <class Slot>
  static void find_device(std::span<const Slot> slots, device& target) {
    if (!slots.empty()) find_device(slots.front().weight, target);
  }

  Result (*function_)(Arguments...) = nullptr;
  const char* operation_ = "";
};

}  // namespace troupe
