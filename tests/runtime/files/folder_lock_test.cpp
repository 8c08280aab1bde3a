#include "troupe/files/folder_lock.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>

#include "child_process.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::files;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("a job cannot begin in a folder that another job writes to, and is told who that is") {
  temp_folder folder;
  folder_lock first(folder.path(), lock_role::begins, "job 12 (process 34 on here)");
  CHECK(first.is_held());
  CHECK_THROWS_MATCHES(
      folder_lock(folder.path(), lock_role::begins, "job 56"), folder_in_use,
      MessageMatches(ContainsSubstring(folder.path().string()) &&
                     ContainsSubstring("in use by job 12 (process 34 on here)") &&
                     ContainsSubstring("Wait until that job has ended, or choose another folder")));
}

TEST_CASE("processes of a job hold the folder together, and the last one that ends gives it up") {
  temp_folder folder;
  std::optional<folder_lock> first(std::in_place, folder.path(), lock_role::begins, "job 1");
  std::optional<folder_lock> second(std::in_place, folder.path(), lock_role::joins, "job 1");
  CHECK(second->is_held());
  first.reset();
  CHECK_THROWS_AS(folder_lock(folder.path(), lock_role::begins, "job 2"), folder_in_use);
  second.reset();
  CHECK(folder_lock(folder.path(), lock_role::begins, "job 2").is_held());
}

TEST_CASE("a job that begins waits for a process that is about to end") {
  temp_folder folder;
  std::optional<folder_lock> ending(std::in_place, folder.path(), lock_role::begins, "job 1");
  auto next = std::async(std::launch::async,
                         [&] { return folder_lock(folder.path(), lock_role::begins, "job 2").is_held(); });
  CHECK(next.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
  ending.reset();
  CHECK(next.get());
}

TEST_CASE("a process that is killed holds no folder") {
  temp_folder folder;
  auto body = [&] {
    folder_lock held(folder.path(), lock_role::begins, "job 1");
    ::raise(SIGKILL);
  };
  CHECK(signal_that_ended(body) == SIGKILL);
  CHECK(folder_lock(folder.path(), lock_role::begins, "job 2").is_held());
}

TEST_CASE("the owner's name is that of the newest job, whatever the length of the one before") {
  temp_folder folder;
  { folder_lock before(folder.path(), lock_role::begins, "a job with a long name"); }
  folder_lock held(folder.path(), lock_role::begins, "job\n2");
  CHECK_THROWS_MATCHES(folder_lock(folder.path(), lock_role::begins, "job 3"), folder_in_use,
                       MessageMatches(ContainsSubstring("in use by job\\x0a2. Wait")));
}

TEST_CASE("a folder that does not exist cannot be held") {
  temp_folder folder;
  CHECK_THROWS_MATCHES(folder_lock(folder.path() / "none", lock_role::begins, "job 1"), snapshot_error,
                       MessageMatches(ContainsSubstring("cannot open") && ContainsSubstring("job.lock")));
}

TEST_CASE("who may write to the folder may lock it, and nobody else") {
  temp_folder folder;
  auto mode_of_lock = [&](mode_t of_folder) {
    ::chmod(folder.path().c_str(), of_folder);
    folder_lock held(folder.path(), lock_role::begins, "job 1");
    struct stat found {};
    REQUIRE(::stat((folder.path() / "job.lock").c_str(), &found) == 0);
    return found.st_mode & 07777;
  };
  CHECK(mode_of_lock(0755) == 0600);
  CHECK(mode_of_lock(0775) == 0660);
  CHECK(mode_of_lock(0777) == 0666);
  CHECK(mode_of_lock(01777) == 0600);
}

TEST_CASE("a lock that leads to another file is refused, and that file stays") {
  temp_folder folder;
  auto precious = folder.path() / "precious", lock = folder.path() / "job.lock";
  std::ofstream(precious) << "text";
  SECTION("a symbolic link") { std::filesystem::create_symlink(precious, lock); }
  SECTION("a hard link") { std::filesystem::create_hard_link(precious, lock); }
  CHECK_THROWS_MATCHES(folder_lock(folder.path(), lock_role::begins, "job 1"), snapshot_error,
                       MessageMatches(ContainsSubstring("job.lock: it ") && ContainsSubstring("link")));
  CHECK(std::filesystem::file_size(precious) == 4);
}

TEST_CASE("another user's lock in a folder of a group is as good as one's own") {
  if (::geteuid() != 0) SKIP("the file gets another owner: run the test as root");
  temp_folder folder;
  ::chmod(folder.path().c_str(), 0770);
  { folder_lock before(folder.path(), lock_role::begins, "job 1"); }
  REQUIRE(::chown((folder.path() / "job.lock").c_str(), 64335, 0) == 0);
  CHECK(folder_lock(folder.path(), lock_role::begins, "job 2").is_held());
}
