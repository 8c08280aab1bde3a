#pragma once
#include <algorithm>
#include <functional>

#include "troupe/collective/store.hpp"

namespace troupe {

/// Another store, in which nobody waits in vain: now and then, and before every call, `check` is called,
/// which throws when there is nothing to wait for any more.
class watched_store final : public store {
 public:
  /// `keys` outlives it.
  watched_store(store& keys, std::function<void()> check) : keys_(keys), check_(std::move(check)) {}

  void check() const override { check_(); }
  void put(const std::string& key, std::span<const std::byte> value) override {
    check_();
    keys_.put(key, value);
  }
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override {
    using clock = std::chrono::steady_clock;
    for (auto until = clock::now() + timeout;;) {
      check_();
      auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
      if (auto value = keys_.get(key, std::clamp(left, {}, interval))) return value;
      if (left <= interval) return {};
    }
  }

 private:
  static constexpr std::chrono::milliseconds interval{100};
  store& keys_;
  std::function<void()> check_;
};

}  // namespace troupe
