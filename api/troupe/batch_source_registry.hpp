#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "troupe/data/dataset.hpp"

namespace troupe {

enum class source_use : std::uint8_t { train, evaluate, predict };

/// Assigns a number to each batch source of a Trainer: one per dataset and use, however often it is used, so
/// that the number of sources does not grow with the number of calls. Keeps the datasets alive, since a
/// recovery may need the samples of any earlier call.
class batch_source_registry {
 public:
  /// Returns the number of the source for `samples` and `use`. `add` creates the source and returns its
  /// number; it is called only for a new pair.
  std::uint32_t number_of(const dataset_ptr& samples, source_use use,
                          const std::function<std::uint32_t()>& add) {
    auto [found, is_new] = numbers_.try_emplace({samples, use}, 0);
    if (is_new) found->second = add();
    return found->second;
  }

 private:
  std::map<std::pair<dataset_ptr, source_use>, std::uint32_t> numbers_;
};

}  // namespace troupe
