#pragma once
#include <gloo/rendezvous/store.h>

#include "troupe/collective/group.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// Our store as gloo's, under keys of one group. gloo calls a member's key by its number.
class gloo_store : public ::gloo::rendezvous::Store {
 public:
  gloo_store(const group_description& group, store& place, std::chrono::milliseconds timeout);

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  /// Throws collective_error with the ranks of those who have not come.
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  std::string full(const std::string& key) const { return prefix_ + key; }
  std::optional<std::vector<std::byte>> find(const std::string& key);

  const group_description& group_;
  store& place_;
  std::chrono::steady_clock::time_point deadline_;
  std::string prefix_;
};

}  // namespace troupe
