#include "troupe/files/folder_marker.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "support/temp_folder.hpp"
#include "troupe/files/snapshot_error.hpp"

using namespace troupe;
using namespace troupe::files;
using namespace std::chrono_literals;

TEST_CASE("a marker is seen in its folder only, while it lives") {
  testing::temp_folder folder, other;
  std::string name;
  int num_waits = 0;
  auto sees = [&](const std::filesystem::path& in) {
    return sees_marker(
        in, name, [&] { return ++num_waits, name; }, 0ms);
  };
  {
    folder_marker marker(folder.path());
    name = marker.name();
    CHECK(sees(folder.path()));
    CHECK_FALSE(sees(other.path()));
    CHECK(folder_marker(folder.path()).name() != name);
  }
  CHECK_FALSE(sees(folder.path()));
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(num_waits == 0);
}

TEST_CASE("a marker that is seen late, or is replaced by another one, is seen") {
  testing::temp_folder folder;
  std::unique_ptr<folder_marker> marker;
  int num_waits = 0;
  auto at_third_wait = [&]() -> std::string {
    if (++num_waits == 3) marker = std::make_unique<folder_marker>(folder.path());
    return marker ? marker->name() : "none yet";
  };
  CHECK(sees_marker(folder.path(), "none yet", at_third_wait, 1h));
  CHECK(num_waits == 3);
}

TEST_CASE("a marker of which nobody asks any more is not waited for") {
  testing::temp_folder folder;
  int num_waits = 0;
  auto until_third_wait = [&]() -> std::optional<std::string> {
    if (++num_waits == 3) return {};
    return "removed";
  };
  CHECK(sees_marker(folder.path(), "removed", until_third_wait, 24h));
  CHECK(num_waits == 3);
}

TEST_CASE("a marker that cannot be made names its folder") {
  testing::temp_folder folder;
  CHECK_THROWS_AS(folder_marker(folder.path() / "missing"), snapshot_error);
}
