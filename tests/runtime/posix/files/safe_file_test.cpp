#include "troupe/posix/files/safe_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::posix;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr safe_file_options truncating = {.content = file_content::truncated};

std::filesystem::path write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
  return file;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

mode_t mode_of(const std::filesystem::path& file) {
  struct stat found {};
  REQUIRE(::lstat(file.c_str(), &found) == 0);
  return found.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file that is made, or was there with another mode, has the mode that was asked for") {
  testing::temp_folder folder;
  auto file = folder.path() / "log";
  REQUIRE(open_safely(file).fd);
  CHECK(mode_of(file) == 0600);
  write(file, "text");
  ::chmod(file.c_str(), 0666);
  REQUIRE(open_safely(file).fd);
  CHECK(mode_of(file) == 0600);
  CHECK(content_of(file) == "text");
  REQUIRE(open_safely(file, truncating).fd);
  CHECK(content_of(file).empty());
}

TEST_CASE("what others can put under a name is neither opened nor changed") {
  testing::temp_folder folder;
  auto precious = write(folder.path() / "precious", "text");
  ::chmod(precious.c_str(), 0644);
  auto name = folder.path() / "log";
  std::string expected;
  SECTION("a symbolic link") {
    std::filesystem::create_symlink(precious, name);
    expected = "symbolic link";
  }
  SECTION("a symbolic link to nothing") {
    std::filesystem::create_symlink(folder.path() / "none", name);
    expected = "symbolic link";
  }
  SECTION("a hard link") {
    std::filesystem::create_hard_link(precious, name);
    expected = "2 names";
  }
  SECTION("a pipe") {
    REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
    expected = "no regular file";
  }
  SECTION("a folder") {
    std::filesystem::create_directory(name);
    expected = "directory";
  }
  auto opened = open_safely(name, truncating);
  CHECK_FALSE(opened.fd);
  CHECK_THAT(opened.problem, ContainsSubstring(expected));
  CHECK(content_of(precious) == "text");
  CHECK(mode_of(precious) == 0644);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "none"));
}

TEST_CASE("a file of another user is only opened where it is said to be fine") {
  if (::geteuid() != 0) SKIP("the file gets another owner: run the test as root");
  testing::temp_folder folder;
  auto file = write(folder.path() / "log", "text");
  REQUIRE(::chown(file.c_str(), 64333, 64333) == 0);
  auto refused = open_safely(file, truncating);
  CHECK_FALSE(refused.fd);
  CHECK_THAT(refused.problem, ContainsSubstring("another user (64333)"));
  CHECK(content_of(file) == "text");
  CHECK(open_safely(file, {.owner = file_owner::anyone}).fd);
  CHECK(mode_of(file) == 0644);
}

TEST_CASE("a new file takes the place of a link, and what that leads to stays") {
  testing::temp_folder folder;
  auto precious = write(folder.path() / "precious", "text"), partial = folder.path() / "trace.partial";
  std::filesystem::create_symlink(precious, partial);
  auto made = create_anew(partial, 0600);
  REQUIRE(made.fd);
  REQUIRE(::write(made.fd.get(), "new", 3) == 3);
  CHECK(content_of(precious) == "text");
  CHECK(content_of(partial) == "new");
  CHECK_FALSE(std::filesystem::is_symlink(std::filesystem::symlink_status(partial)));
  CHECK(create_anew(folder.path() / "none" / "file", 0600).error_number == ENOENT);
}

TEST_CASE("a symbolic link to a folder of one's own is followed") {
  testing::temp_folder folder;
  std::filesystem::create_directory(folder.path() / "scratch");
  std::filesystem::create_directory_symlink(folder.path() / "scratch", folder.path() / "logs");
  CHECK(open_safely(folder.path() / "logs" / "log").fd);
  CHECK(create_anew(folder.path() / "logs" / "partial", 0600).fd);
}

TEST_CASE("a folder that others may change is told from one that only its user may change") {
  testing::temp_folder folder;
  auto with = [&](mode_t mode) {
    ::chmod(folder.path().c_str(), mode);
    return others_who_may_change(folder.path());
  };
  CHECK(with(0755).empty());
  CHECK_THAT(with(0777), ContainsSubstring("everybody") && ContainsSubstring("0777"));
  CHECK(with(01777).empty());
  CHECK(with(0700).empty());
  auto within = folder.path() / "own" / "snapshots";
  std::filesystem::create_directories(within);
  with(0777);
  CHECK_THAT(others_who_may_change(within),
             ContainsSubstring("everybody may write to " + folder.path().string() + ", in which it is"));
  with(01777);
  CHECK(others_who_may_change(within).empty());
  if (::geteuid() != 0) SKIP("the folder gets another owner: run the test as root");
  REQUIRE(::chown(folder.path().c_str(), 0, 64333) == 0);
  CHECK_THAT(with(0770), ContainsSubstring("group (64333)"));
  CHECK(with(0750).empty());
  REQUIRE(::chown(folder.path().c_str(), 64333, 0) == 0);
  CHECK_THAT(with(0755), ContainsSubstring("another user (64333)"));
}

TEST_CASE("a file that others may read is told from one that only its user may read") {
  testing::temp_folder folder;
  auto file = folder.path() / "token";
  std::ofstream(file) << "a secret";
  auto with = [&](mode_t mode) {
    ::chmod(file.c_str(), mode);
    return others_who_may_read(file);
  };
  CHECK(with(0600).empty());
  CHECK_THAT(with(0644), ContainsSubstring("everybody may read it (mode 0644)"));
  CHECK(others_who_may_read(folder.path() / "none").empty());
  if (::geteuid() != 0) SKIP("the file gets another owner: run the test as root");
  REQUIRE(::chown(file.c_str(), 0, 64333) == 0);
  CHECK_THAT(with(0640), ContainsSubstring("group (64333) may read it"));
  REQUIRE(::chown(file.c_str(), 64333, 0) == 0);
  CHECK_THAT(with(0600), ContainsSubstring("another user (64333)"));
}
