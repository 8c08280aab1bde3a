#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// SHA-256, as hex, over the elements of all parameters, little-endian, in the lexicographic order of their
/// names: equal if and only if two models' weights have the same bits, for any partition into
/// stages. Throws std::invalid_argument for an undefined tensor or a name that occurs twice.
std::string weights_sha256(std::vector<named_tensor> parameters);

namespace snapshot {

/// The same, parameter by parameter in that order, by one process after the other: what has been hashed so
/// far is `state()`, from which another one goes on.
class weights_hasher {
 public:
  weights_hasher();
  /// Throws std::invalid_argument for what state() does not return.
  explicit weights_hasher(std::span<const std::byte> state);

  /// `on_progress` is called before each 64 MiB or less; what it throws leaves the hash unchanged.
  void add(
      const tensor& value, const std::function<void()>& on_progress = [] {});
  std::vector<std::byte> state() const { return state_; }
  /// Of all that was added.
  std::string hex() const;

 private:
  std::vector<std::byte> state_;
};

}  // namespace snapshot

}  // namespace troupe
