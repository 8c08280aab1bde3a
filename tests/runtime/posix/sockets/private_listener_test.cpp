#include "troupe/posix/sockets/private_listener.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <fstream>
#include <functional>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/posix/files/private_folder.hpp"

using namespace troupe;
using namespace troupe::posix;
using Catch::Matchers::StartsWith;

namespace {

constexpr uid_t other_user = 64332;

bool accepts(const private_listener& listener) {
  return static_cast<bool>(unique_fd(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)));
}

/// What `call` returns in a process of its own, which may end without destructors.
int in_process(const std::function<int()>& call) {
  auto child = ::fork();
  if (child == 0) ::_exit(call());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WEXITSTATUS(status);
}

std::size_t num_entries(const std::filesystem::path& folder) {
  auto entries = std::filesystem::directory_iterator(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::filesystem::path own_folder(const testing::temp_folder& parent) {
  return parent.path() / ("troupe-" + std::to_string(::geteuid()));
}

}  // namespace

TEST_CASE("a socket for this user's processes lies in a folder of their own, and goes with its process") {
  testing::temp_folder parent;
  {
    private_listener listener({parent.path()});
    CHECK_THAT(listener.address(), StartsWith((own_folder(parent) / "groups-").string()));
    CHECK(problem_of_private(own_folder(parent)).empty());
    auto made = connect_privately(listener.address());
    CHECK(made);
    CHECK(accepts(listener));
    CHECK_FALSE(accepts(listener));
  }
  CHECK(num_entries(own_folder(parent)) == 0);
}

TEST_CASE("sockets of killed processes are removed, and those of others stay") {
  testing::temp_folder parent;
  private_listener living({parent.path()});
  auto leave_one = [&] {
    new private_listener({parent.path()});  // NOLINT(cppcoreguidelines-owning-memory): as if it were killed
    return 0;
  };
  REQUIRE(in_process(leave_one) == 0);
  REQUIRE(num_entries(own_folder(parent)) == 2);
  private_listener next({parent.path()});
  CHECK(num_entries(own_folder(parent)) == 2);
  CHECK(connect_privately(living.address()));
  CHECK(connect_privately(next.address()));
}

TEST_CASE("a process of another user cannot connect to a socket of this one") {
  if (::geteuid() != 0) SKIP("it connects as another user: run the test as root");
  private_listener listener;
  auto connect_as = [&](uid_t user) {
    return in_process([&] {
      if (::setgid(user) != 0 || ::setuid(user) != 0) return 255;
      try {
        return connect_privately(listener.address()) ? 0 : EAGAIN;
      } catch (const system_failure& refused) {
        return refused.error_number();
      }
    });
  };
  CHECK(connect_as(other_user) == EACCES);
  CHECK(connect_as(0) == 0);
}

TEST_CASE("another user who takes the folder's name keeps no socket from being made") {
  if (::geteuid() != 0) SKIP("the folder gets another owner: run the test as root");
  testing::temp_folder parent;
  ::chmod(parent.path().c_str(), 01777);
  std::filesystem::create_directory(own_folder(parent));
  REQUIRE(::chown(own_folder(parent).c_str(), other_user, other_user) == 0);
  private_listener listener({parent.path()});
  CHECK_THAT(listener.address(), StartsWith(own_folder(parent).string() + "-"));
  CHECK(connect_privately(listener.address()));
}

TEST_CASE("where no folder can be written a socket has an abstract name") {
  testing::temp_folder parent;
  auto file = parent.path() / "file";
  std::ofstream(file) << "text";
  private_listener listener({file, "/nonexistent"});
  CHECK_THAT(listener.address(), StartsWith("@troupe-"));
  CHECK(listener.place() == "@");
  CHECK(connect_privately(listener.address()));
}

TEST_CASE("processes that see other folders know that they do not reach each other's sockets") {
  testing::temp_folder one, other;
  private_listener first({one.path()}), second({one.path()}), third({other.path()});
  CHECK(first.place() == second.place());
  CHECK(first.place() != third.place());
}

TEST_CASE("a socket can be reached whatever the umask of its process") {
  testing::temp_folder parent;
  auto before = ::umask(0777);
  private_listener listener({parent.path()});
  ::umask(before);
  if (::geteuid() != 0) CHECK(connect_privately(listener.address()));
  struct stat found {};
  REQUIRE(::stat(listener.address().c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0600);
}
