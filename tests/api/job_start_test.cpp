#include "troupe/detail/start/job_start.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "support/temp_folder.hpp"
#include "troupe/files/folder_marker.hpp"

using namespace troupe;

namespace {

/// As that of an agent, whose answers take some time to come.
class remote_store final : public collective::store {
 public:
  void put(const std::string& key, std::span<const std::byte> value) override {
    values_[key] = {value.begin(), value.end()};
  }
  void put(const std::string& key, const std::string& value) { put(key, std::as_bytes(std::span(value))); }
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override {
    if (on_get) on_get();
    auto found = values_.find(key);
    if (timeout.count() == 0 || found == values_.end()) return {};
    return found->second;
  }
  std::function<void()> on_get;

 private:
  std::map<std::string, std::vector<std::byte>> values_;
};

bool shares(remote_store& keys, const testing::temp_folder& folder) {
  return detail::shares_folder(keys, "marker", "verdict", folder.path());
}

}  // namespace

TEST_CASE("a process that replaces a lost one of a job that has begun does not wait for a removed marker") {
  remote_store keys;
  keys.put("marker", "removed");
  keys.put("verdict", "");
  CHECK(shares(keys, testing::temp_folder()));
}

TEST_CASE("a process that sees the marker asks for no verdict") {
  testing::temp_folder folder;
  files::folder_marker marker(folder.path());
  remote_store keys;
  keys.put("marker", marker.name());
  int num_gets = 0;
  keys.on_get = [&] { ++num_gets; };
  CHECK(shares(keys, folder));
  CHECK(num_gets == 1);
}

TEST_CASE("the marker of a process that replaces a lost rank 0 is looked for next") {
  testing::temp_folder folder;
  files::folder_marker marker(folder.path());
  remote_store keys;
  keys.put("marker", "of the lost one");
  int num_gets = 0;
  keys.on_get = [&] {
    if (++num_gets == 3) keys.put("marker", marker.name());
  };
  CHECK(shares(keys, folder));
}
