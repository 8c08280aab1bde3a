#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "troupe/data/dataset.hpp"

namespace troupe {

enum class source_use : std::uint8_t { train, evaluate, predict };

/// The numbers of the batch sources that a Trainer has made: one for each dataset and use, however often it
/// is used, so that a program may make any number of calls. Datasets stay alive as long as this: a recovery
/// may need the samples of any earlier call.
class known_sources {
 public:
  /// `add` makes the source and returns its number; called the first time only.
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
