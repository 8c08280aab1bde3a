#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troupe/tensor/device.hpp"
#include "troupe/tensor/dtype.hpp"
#include "troupe/tensor/memory.hpp"
#include "troupe/tensor/shape.hpp"

namespace troupe {

/// A handle to contiguous elements: reference-counted storage, shape, dtype, device. Copying the handle
/// shares the elements. Handles may pass between threads; concurrent writes to the elements are the
/// caller's to avoid.
class tensor {
 public:
  /// No storage; `defined()` is false.
  tensor() = default;

  /// Uninitialised elements, 64-byte aligned.
  static tensor empty(troupe::shape extents, troupe::dtype type = troupe::dtype::f32,
                      troupe::device target = {});
  static tensor zeros(troupe::shape extents, troupe::dtype type = troupe::dtype::f32,
                      troupe::device target = {});
  static tensor full(troupe::shape extents, float value);
  /// A copy of `values`; throws std::invalid_argument if their number is not that of the shape.
  template <class T>
  static tensor from(std::span<const T> values, troupe::shape extents) {
    return copy_of(std::as_bytes(values), std::move(extents), dtype_of<T>::value);
  }
  template <class T>
  static tensor from(const std::vector<T>& values, troupe::shape extents) {
    return from(std::span<const T>(values), std::move(extents));
  }
  /// Wraps external memory that `owner` keeps alive (a mapped file, a received buffer), like
  /// torch::from_blob.
  static tensor wrap(std::shared_ptr<void> owner, std::byte* elements, troupe::shape extents,
                     troupe::dtype type, troupe::device target = {});

  bool defined() const { return elements_ != nullptr; }
  const troupe::shape& shape() const { return shape_; }
  troupe::dtype dtype() const { return dtype_; }
  troupe::device device() const { return device_; }
  std::int64_t num_elements() const { return shape_.num_elements(); }
  std::size_t size_bytes() const {
    return static_cast<std::size_t>(num_elements()) * troupe::size_bytes(dtype_);
  }

  /// The elements as T. Throws std::invalid_argument if T is not the dtype, the tensor is undefined, or its
  /// bytes are in a GPU's memory.
  template <class T>
  std::span<T> values() {
    require(dtype_of<T>::value);
    return {reinterpret_cast<T*>(elements_), static_cast<std::size_t>(num_elements())};
  }
  template <class T>
  std::span<const T> values() const {
    require(dtype_of<T>::value);
    return {reinterpret_cast<const T*>(elements_), static_cast<std::size_t>(num_elements())};
  }
  /// The memory of the elements, on any device.
  std::span<std::byte> bytes() { return {elements_, defined() ? size_bytes() : 0}; }
  std::span<const std::byte> bytes() const { return {elements_, defined() ? size_bytes() : 0}; }

  /// The same elements under another shape of the same size.
  tensor reshape(troupe::shape extents) const;
  /// Rows [first, first + count) of axis 0, sharing the elements.
  tensor rows(std::int64_t first, std::int64_t count) const;
  /// A deep copy.
  tensor clone() const;
  /// Copies the elements of `source`, which must have this shape and dtype, from any device; none, if they
  /// are this tensor's own.
  void copy_from(const tensor& source);
  /// Returns this tensor if it is on `target` already, else a copy there. Throws bad_input if the device does
  /// not exist.
  tensor to(troupe::device target) const;
  /// Whether another handle, possibly with another shape, may share the memory.
  bool is_shared() const { return owner_.use_count() > 1; }
  /// Sets the memory category in the statistics, if it is `other`.
  void set_memory_category(memory_category category) const { troupe::set_memory_category(owner_, category); }
  /// Zero bytes, which are zero elements of every dtype.
  void fill_zero();

 private:
  static tensor copy_of(std::span<const std::byte> values, troupe::shape extents, troupe::dtype type);
  void require(troupe::dtype type) const;

  std::shared_ptr<void> owner_;
  std::byte* elements_ = nullptr;
  troupe::shape shape_;
  troupe::dtype dtype_ = troupe::dtype::f32;
  troupe::device device_;
};

/// A tensor and its name in states, snapshots and hashes, for example "2.weight".
struct named_tensor {
  std::string name;
  tensor value;
};

/// "f32[32, 784]", "f32[32, 784] on cuda:0" or "undefined"
std::string describe(const tensor& value);

}  // namespace troupe
