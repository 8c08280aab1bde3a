#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace troupe {

/// The extents of a tensor, outermost axis first. Every extent is >= 0; a shape without axes is a scalar.
class shape {
 public:
  shape() = default;
  shape(std::initializer_list<std::int64_t> extents);
  explicit shape(std::vector<std::int64_t> extents);

  int rank() const { return static_cast<int>(extents_.size()); }
  /// Negative axes count from the end. Throws std::invalid_argument outside [-rank, rank).
  std::int64_t operator[](int axis) const;
  /// The product of the extents; 1 for a scalar. Construction throws if it overflows.
  std::int64_t num_elements() const { return num_elements_; }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  bool operator==(const shape& other) const { return extents_ == other.extents_; }

 private:
  std::vector<std::int64_t> extents_;
  std::int64_t num_elements_ = 1;
};

/// "[32, 784]"
std::string to_string(const shape& extents);

}  // namespace troupe
