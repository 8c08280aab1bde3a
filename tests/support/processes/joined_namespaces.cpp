#include "support/processes/joined_namespaces.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#include "support/processes/run_process.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::testing {
namespace {

/// Runs a command and returns its error; empty if it succeeded.
std::string failure_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ip");
  auto result = run_process({.command = arguments, .environment = {}, .without = {}});
  if (result.exit_code == 0) return {};
  return result.errors.empty() ? "there is no `ip`" : result.errors;
}

/// Waits until the kernel reports that the cable works, a while after both ends were set up.
std::string await_carrier(const std::string& name) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    auto shown = run_process({.command = {"ip", "-n", name, "link", "show", joined_namespaces::interface},
                              .environment = {},
                              .without = {}});
    if (shown.output.find("state UP") != std::string::npos) return {};
  }
  return "the cable does not come up";
}

}  // namespace

joined_namespaces::joined_namespaces() {
  std::string failure;
  auto try_ip = [&](std::vector<std::string> arguments) {
    if (failure.empty()) failure = failure_of(std::move(arguments));
  };
  for (const char* end : {"-0", "-1"}) {
    auto name = "troupe-test-" + std::to_string(::getpid()) + end;
    try_ip({"netns", "add", name});
    if (failure.empty()) names_.push_back(name);
  }
  if (failure.empty())
    try_ip({"link", "add", interface, "netns", names_[0], "type", "veth", "peer", "name", interface, "netns",
            names_[1]});
  for (std::size_t i = 0; i < names_.size(); ++i) {
    try_ip({"-n", names_[i], "address", "add", address(static_cast<int>(i)) + "/24", "dev", interface});
    try_ip({"-n", names_[i], "link", "set", interface, "up"});
    try_ip({"-n", names_[i], "link", "set", "lo", "up"});
  }
  for (const auto& name : names_)
    if (failure.empty()) failure = await_carrier(name);
  if (failure.empty()) return;
  for (const auto& name : names_) failure_of({"netns", "del", name});
  SKIP("two joined network namespaces cannot be made here: " << failure << " (run the test as root)");
}

joined_namespaces::~joined_namespaces() {
  for (const auto& name : names_) failure_of({"netns", "del", name});
}

void joined_namespaces::enter(int which) const {
  auto path = "/run/netns/" + name(which);
  posix::unique_fd place(
      static_cast<int>(check_posix(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path)));
  check_posix(::setns(place.get(), CLONE_NEWNET), "enter " + path);
  // UCX finds interfaces in /sys, which lists those of the network namespace in which it was mounted.
  check_posix(::unshare(CLONE_NEWNS), "leave the mount namespace");
  check_posix(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
  check_posix(::mount("sysfs", "/sys", "sysfs", 0, nullptr), "mount /sys");
}

void joined_namespaces::cut() const {
  auto failure = failure_of({"-n", names_[0], "link", "set", interface, "down"});
  if (!failure.empty()) throw std::runtime_error("cannot cut the cable: " + failure);
}

}  // namespace troupe::testing
