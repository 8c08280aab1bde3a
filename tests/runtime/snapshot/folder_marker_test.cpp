#include "troupe/snapshot/folder_marker.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "support/temp_folder.hpp"
#include "troupe/snapshot/snapshot_error.hpp"

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a marker is seen in its folder only, while it lives") {
  testing::temp_folder folder, other;
  std::string name;
  {
    folder_marker marker(folder.path());
    name = marker.name();
    CHECK(sees_marker(
        folder.path(), [&] { return name; }, 0ms));
    CHECK_FALSE(sees_marker(
        other.path(), [&] { return name; }, 0ms));
    CHECK(folder_marker(folder.path()).name() != name);
  }
  CHECK_FALSE(sees_marker(
      folder.path(), [&] { return name; }, 0ms));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a marker that is seen late, or is replaced by another one, is seen") {
  testing::temp_folder folder;
  std::unique_ptr<folder_marker> marker;
  int num_looks = 0;
  auto at_third_look = [&]() -> std::string {
    if (++num_looks == 3) marker = std::make_unique<folder_marker>(folder.path());
    return marker ? marker->name() : "none yet";
  };
  CHECK(sees_marker(folder.path(), at_third_look, 1h));
  CHECK(num_looks == 3);
}

TEST_CASE("a marker of which nobody asks any more is not waited for") {
  testing::temp_folder folder;
  int num_looks = 0;
  auto until_third_look = [&]() -> std::optional<std::string> {
    if (++num_looks == 3) return {};
    return "removed";
  };
  CHECK(sees_marker(folder.path(), until_third_look, 24h));
  CHECK(num_looks == 3);
}

TEST_CASE("a marker that cannot be made names its folder") {
  testing::temp_folder folder;
  CHECK_THROWS_AS(folder_marker(folder.path() / "missing"), snapshot_error);
}
