#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "troupe/snapshot/weights_hash.hpp"

namespace troupe::actors::scheduler {

/// The hash of all parameters (weights_sha256) as it goes from holder to holder, each of which adds those
/// that come next in the order of names: no process gets weights of another one. A parameter may be several
/// holders', which have pieces of it one after the other.
class distributed_hash {
 public:
  struct holder {
    std::uint32_t stage = 0, replica = 0;
    auto operator<=>(const holder&) const = default;
  };
  /// What one is to hash next.
  struct turn {
    distributed_hash::holder holder;
    std::uint64_t num_hashed = 0;  ///< parameters and pieces before these
    std::vector<std::string> names;
    std::vector<std::byte> state;
  };

  explicit distributed_hash(std::size_t num_holders = 0) : num_holders_(num_holders) {}

  /// What a holder has: names, and of each the first element (`firsts`). Returns whether these are the last
  /// ones; false if they are known. Throws std::invalid_argument for what another one has, and for lists of
  /// different lengths.
  bool add(const holder& from, const std::vector<std::string>& names,
           const std::vector<std::int64_t>& firsts);
  /// The first `num_hashed` of them are hashed. False: they are not what the newest turn leads to.
  bool on_hashed(std::uint64_t num_hashed, const std::vector<std::byte>& state);
  /// None: all are hashed. Those of all holders must be known.
  std::optional<turn> next_turn() const;
  /// Once there is no turn left.
  std::string hex() const { return hasher_.hex(); }

 private:
  std::size_t num_holders_;
  std::set<holder> known_;
  std::map<std::pair<std::string, std::int64_t>, holder> holder_of_;  ///< by parameter and first element
  std::uint64_t num_hashed_ = 0;
  snapshot::weights_hasher hasher_;
};

}  // namespace troupe::actors::scheduler
