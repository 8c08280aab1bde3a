#include "troupe/messaging/job_secret.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::messaging;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

using folder_list = std::vector<std::filesystem::path>;

namespace {

/// Of no other process: secrets are found in /tmp too, where jobs of other tests may have theirs.
const auto port = static_cast<std::uint16_t>(20000 + ::getpid() % 20000);

}  // namespace

TEST_CASE("secrets are new each time, and convert to hexadecimal text and back") {
  auto first = make_job_secret(), second = make_job_secret();
  CHECK(first.size() == 32);
  CHECK(first != second);
  CHECK(parse_job_secret(wire::to_hex(first)) == first);
  CHECK(wire::to_hex(std::vector{std::byte{0x0f}, std::byte{0xa0}}) == "0fa0");
}

TEST_CASE("text that is no secret is refused without being shown") {
  for (std::string bad :
       {"", "abc", "zz112233445566778899aabbccddeeff00", "0011", "00112233445566778899aabbccddeef"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_job_secret(bad), bad_input);
  }
  CHECK_THROWS_WITH(parse_job_secret("supersecret"),
                    ContainsSubstring("TROUPE_JOB_SECRET") && !ContainsSubstring("supersecret"));
}

TEST_CASE("rank 0 publishes a secret that others on the host find, until it is done") {
  testing::temp_folder folder;
  auto waiting =
      std::async(std::launch::async, [&] { return wait_for_job_secret({folder.path()}, port, 30s); });
  {
    published_job_secret published({folder.path()}, port);
    CHECK(waiting.get() == published.secret());
    struct stat about {};
    REQUIRE(::stat(job_secret_path(folder.path(), port).c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
    CHECK_THROWS_WITH(published_job_secret({folder.path()}, port),
                      ContainsSubstring(std::to_string(::getpid())));
    CHECK_THROWS_WITH(wait_for_job_secret({folder.path()}, port + 1, 0ms),
                      ContainsSubstring(std::to_string(port + 1)));
  }
  CHECK_FALSE(std::filesystem::exists(job_secret_path(folder.path(), port)));
}

TEST_CASE("a secret file left behind by a killed job is not used, and is replaced") {
  testing::temp_folder folder;
  auto child = ::fork();
  if (child == 0) {
    new published_job_secret({folder.path()}, port);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  REQUIRE(std::filesystem::exists(job_secret_path(folder.path(), port)));
  CHECK_THROWS_AS(wait_for_job_secret({folder.path()}, port, 0ms), bad_input);
  published_job_secret fresh({folder.path()}, port);
  CHECK(wait_for_job_secret({folder.path()}, port, 0ms) == fresh.secret());
}

TEST_CASE("a file that others can read or that is a link is refused") {
  testing::temp_folder folder;
  auto path = job_secret_path(folder.path(), port);
  SECTION("mode") {
    std::ofstream(path) << wire::to_hex(make_job_secret());
    ::chmod(path.c_str(), 0640);
    CHECK_THROWS_WITH(wait_for_job_secret({folder.path()}, port, 0ms), ContainsSubstring("by others"));
  }
  SECTION("link") {
    std::ofstream(folder.path() / "elsewhere") << wire::to_hex(make_job_secret());
    std::filesystem::create_symlink(folder.path() / "elsewhere", path);
    CHECK_THROWS_WITH(wait_for_job_secret({folder.path()}, port, 0ms), ContainsSubstring(path.string()));
  }
  SECTION("folder") {
    std::filesystem::create_directory(path);
    CHECK_THROWS_WITH(wait_for_job_secret({folder.path()}, port, 0ms), ContainsSubstring("not a plain file"));
  }
}

TEST_CASE("a folder that cannot be written is named") {
  CHECK_THROWS_WITH(published_job_secret({"/nonexistent/folder"}, 1),
                    ContainsSubstring("/nonexistent/folder"));
}

TEST_CASE("of two rank 0 that start at once one is refused, and the other's secret stays") {
  testing::temp_folder folder;
  for (int round = 0; round < 100; ++round) {
    std::array<std::unique_ptr<published_job_secret>, 2> made;
    std::barrier both(2);
    auto publish = [&](std::unique_ptr<published_job_secret>& into) {
      both.arrive_and_wait();
      try {
        into = std::make_unique<published_job_secret>(folder_list{folder.path()}, port + 1);
      } catch (const bad_input&) {  // NOLINT: the other one was first
      }
    };
    std::thread other([&] { publish(made[1]); });
    publish(made[0]);
    other.join();
    CHECK((made[0] != nullptr) != (made[1] != nullptr));
    auto& first = made[0] ? made[0] : made[1];
    CHECK(wait_for_job_secret({folder.path()}, port + 1, 0ms) == first->secret());
  }
}

TEST_CASE("a secret is found in /tmp too, when rank 0 was started with another environment") {
  testing::temp_folder own;
  published_job_secret published({"/tmp"}, port);
  CHECK(wait_for_job_secret({own.path()}, port, 0ms) == published.secret());
}

TEST_CASE("a folder that is missing or another user's is passed over for the next one") {
  testing::temp_folder own, others;
  REQUIRE((::geteuid() != 0 || ::chown(others.path().c_str(), 64334, 64334) == 0));
  folder_list folders{"/nonexistent/folder", others.path(), own.path()};
  if (::geteuid() != 0) folders.erase(folders.begin() + 1);
  published_job_secret published(folders, port);
  CHECK(std::filesystem::exists(job_secret_path(own.path(), port)));
  CHECK(wait_for_job_secret(folders, port, 0ms) == published.secret());
}

TEST_CASE("in a folder of all users the secret is in one of this user's own") {
  testing::temp_folder shared;
  ::chmod(shared.path().c_str(), 01777);
  auto own = shared.path() / ("troupe-" + std::to_string(::geteuid()));
  published_job_secret published({shared.path()}, port);
  struct stat about {};
  REQUIRE(::stat(own.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0700);
  CHECK(std::filesystem::exists(job_secret_path(own, port)));
  CHECK(wait_for_job_secret({shared.path()}, port, 0ms) == published.secret());
}

TEST_CASE("a folder that all may change without the sticky bit holds no secret") {
  testing::temp_folder shared;
  ::chmod(shared.path().c_str(), 0777);
  CHECK_THROWS_WITH(published_job_secret({shared.path()}, port), ContainsSubstring("everybody may write"));
}

TEST_CASE("another user who takes the names of this user's folder and file keeps no job from starting") {
  if (::geteuid() != 0) SKIP("files of another user are made: run the test as root");
  testing::temp_folder shared;
  ::chmod(shared.path().c_str(), 01777);
  auto taken = shared.path() / "troupe-0";
  SECTION("with a folder") { std::filesystem::create_directory(taken); }
  SECTION("with a file") { std::ofstream(taken) << "taken"; }
  SECTION("with a link") { std::filesystem::create_symlink("/root", taken); }
  REQUIRE(::lchown(taken.c_str(), 64334, 64334) == 0);
  auto old_file = job_secret_path(shared.path(), port);
  std::ofstream(old_file) << "taken";
  REQUIRE(::chown(old_file.c_str(), 64334, 64334) == 0);
  published_job_secret published({shared.path()}, port);
  CHECK(wait_for_job_secret({shared.path()}, port, 0ms) == published.secret());
}
