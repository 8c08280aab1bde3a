#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "troupe/snapshot/weights_hash.hpp"

namespace troupe::actors::scheduler {

/// The hash of all parameters (weights_sha256) as it goes from stage to stage, each of which adds those that
/// come next in the order of names: no process gets weights of another one.
class distributed_hash {
 public:
  /// What a stage is to hash next.
  struct turn {
    std::uint32_t stage = 0;
    std::uint64_t num_hashed = 0;  ///< parameters before these
    std::vector<std::string> names;
    std::vector<std::byte> state;
  };

  explicit distributed_hash(std::size_t num_stages = 0) : num_stages_(num_stages) {}

  /// The parameters of a stage. Returns whether these are the last ones; false if they are known. Throws
  /// std::invalid_argument for a name that another stage has.
  bool add(std::uint32_t stage, const std::vector<std::string>& names);
  /// The first `num_hashed` parameters are hashed. False: they are not what the newest turn leads to.
  bool on_hashed(std::uint64_t num_hashed, const std::vector<std::byte>& state);
  /// None: all are hashed. The parameters of all stages must be known.
  std::optional<turn> next_turn() const;
  /// Once there is no turn left.
  std::string hex() const { return hasher_.hex(); }

 private:
  std::size_t num_stages_;
  std::set<std::uint32_t> known_;                  ///< stages
  std::map<std::string, std::uint32_t> stage_of_;  ///< by parameter
  std::uint64_t num_hashed_ = 0;
  snapshot::weights_hasher hasher_;
};

}  // namespace troupe::actors::scheduler
