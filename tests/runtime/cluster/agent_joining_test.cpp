// How processes come to a job's agent: who is refused, what is waited for, and how long.
#include <fcntl.h>
#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <future>
#include <optional>

#include "live_agent.hpp"
#include "troupe/cluster/agent.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/messaging/tcp_socket.hpp"

using namespace troupe;
using namespace troupe::cluster;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string refusal_of(const agent_client_options& options) {
  try {
    test_member refused(options);
  } catch (const bad_input& refusal) {
    return refusal.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "an agent without file descriptors warns once, does not spin, and accepts members when there are "
    "descriptors again") {
  live_agent job(job_of(1));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::vector<posix::unique_fd> taken;
  auto client = job.client(0);
  int error = 0;
  rlimit little{before};
  little.rlim_cur = 64;
  ::setrlimit(RLIMIT_NOFILE, &little);
  while (true) {
    posix::unique_fd one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!one) break;
    taken.push_back(std::move(one));
  }
  taken.pop_back();  // for the connection's own end
  auto knocking = messaging::try_connect("127.0.0.1", client.port, 5s, error);
  auto said = job.warnings.next();
  CHECK_THAT(said, ContainsSubstring("no file descriptors are left"));
  taken.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
  test_member member(client);
  member.join();
  member.views.next();
  CHECK(job.warnings.empty());
}

TEST_CASE("members that never join end the job, and are named") {
  auto options = job_of(3);
  options.join_timeout = 2s;
  live_agent job(options);
  test_member first(job.client(1));
  first.join();
  CHECK_THAT(first.ends.next(), ContainsSubstring("ranks 0, 2 of 3"));
  CHECK_THAT(job.failures.next(), ContainsSubstring("ranks 0, 2 of 3"));
}

TEST_CASE("a process that comes after the end of the job ends as the members did, and is not refused") {
  SECTION("the job has failed") {
    live_agent job(job_of(2));
    job.made->fail_job("the disk said no");
    job.failures.next();
    CHECK(test_member(job.client(1)).ends.next() == "the disk said no");
  }
  SECTION("the job was stopped") {
    live_agent job(job_of(2));
    job.made->stop_job(SIGTERM);
    CHECK(test_member(job.client(1)).stopped.next() == "before it began");
  }
}

TEST_CASE("a time without heartbeats that members which live would exceed is refused") {
  auto options = job_of(1);
  options.secret = messaging::make_job_secret();
  options.suspect_after = least_suspect_after;
  make_agent(options, {});
  options.suspect_after -= 1ms;
  CHECK_THROWS_AS(make_agent(options, {}), bad_input);
  CHECK_THROWS_WITH(make_agent(options, {}),
                    ContainsSubstring("--suspect-after: expected at least 200ms, got 199ms") &&
                        ContainsSubstring("a heartbeat every 100ms"));
}

TEST_CASE("a differing numeric class ends the job and the error names both") {
  live_agent job(job_of(2));
  test_member first(job.client(0)), second(job.client(1));
  first.join("avx2");
  second.join("avx512_core");
  CHECK_THAT(job.failures.next(), ContainsSubstring("avx2") && ContainsSubstring("avx512_core") &&
                                      ContainsSubstring("one version of Troupe"));
}

TEST_CASE("a wrong secret is refused with an error, and the job continues") {
  live_agent job(job_of(1));
  auto unauthenticated = job.client(0);
  unauthenticated.secret = messaging::make_job_secret();
  CHECK_THAT(refusal_of(unauthenticated), ContainsSubstring("refused this process's job secret") &&
                                              ContainsSubstring("TROUPE_JOB_SECRET") &&
                                              ContainsSubstring(std::to_string(job.made->port())) &&
                                              !ContainsSubstring(wire::to_hex(job.options.secret)));
  test_member member(job.client(0));
  member.join();
  CHECK(member.views.next().members.size() == 1);
}

TEST_CASE("wrong ranks, sizes and incarnations are refused with an error") {
  live_agent job(job_of(2));
  auto wrong_size = job.client(0);
  wrong_size.world_size = 3;
  CHECK_THAT(refusal_of(wrong_size), ContainsSubstring("a job of 3 processes, this one has 2"));
  CHECK_THAT(refusal_of(job.client(2)), ContainsSubstring("rank 2 does not exist"));
  test_member member(job.client(0));
  CHECK_THAT(refusal_of(job.client(0)), ContainsSubstring("rank 0 is taken"));
  member.join();
  auto now = std::chrono::steady_clock::now();
  job.made->process_lost(0, "killed by SIGKILL", now, {});
  CHECK_THAT(refusal_of(job.client(0)), ContainsSubstring("was lost and replaced"));
  CHECK_THAT(member.ends.next(), ContainsSubstring("is gone"));
}

TEST_CASE("a port in use is named, with what to do") {
  live_agent job(job_of(1));
  auto options = job.options;
  options.port = job.made->port();
  CHECK_THROWS_WITH(make_agent(options, {}),
                    ContainsSubstring("127.0.0.1:" + std::to_string(job.made->port())) &&
                        ContainsSubstring("--master-port"));
  CHECK_THROWS_AS(make_agent(options, {}), bad_input);
  options.address = "no.such.host.invalid";
  CHECK_THROWS_WITH(make_agent(options, {}), ContainsSubstring("no.such.host.invalid"));
}

TEST_CASE("rank 0 and its members wait for a name without an address until the join timeout, and say so") {
  auto options = job_of(1);
  options.secret = messaging::make_job_secret();
  options.address = "no.such.host.invalid";
  options.has_other_hosts = true;
  options.join_timeout = 1200ms;
  std::vector<std::string> told;
  agent_callbacks callbacks;
  callbacks.on_warning = [&](const std::string& what) { told.push_back(what); };
  CHECK_THROWS_WITH(make_agent(options, callbacks), ContainsSubstring("no.such.host.invalid"));
  agent_client_options client;
  client.address = options.address;
  client.secret = options.secret;
  client.connect_timeout = 1200ms;
  client.on_waiting = callbacks.on_warning;
  CHECK_THAT(refusal_of(client),
             ContainsSubstring("cannot reach the job's agent at no.such.host.invalid:29500") &&
                 ContainsSubstring("MASTER_ADDR"));
  REQUIRE(told.size() == 2);  // once each, however often they tried
  for (const auto& one : told)
    CHECK_THAT(one, ContainsSubstring("'no.such.host.invalid' cannot be used") &&
                        ContainsSubstring("trying again until --join-timeout"));
}

TEST_CASE("what can never be a name or an address is refused at once, with what is wrong") {
  auto refused = [](const std::string& address) {
    auto options = job_of(2);
    options.address = address;
    options.has_other_hosts = true;
    options.join_timeout = 1h;
    std::string text;
    try {
      make_agent(options, {});
    } catch (const bad_input& problem) {
      text = problem.what();
    }
    agent_client_options client;
    client.address = address;
    client.secret = options.secret;
    client.connect_timeout = 1h;
    CHECK(refusal_of(client) == text);
    return text;
  };
  CHECK_THAT(refused("10.0.0.1:29500"), ContainsSubstring("MASTER_PORT") && ContainsSubstring("Give a host"));
  CHECK_THAT(refused("tcp://10.0.0.1"), ContainsSubstring("it is a URL"));
  CHECK_THAT(refused("10.0.0.1\n"), ContainsSubstring("no spaces"));
  CHECK_THAT(refused("10.0.0.256"), ContainsSubstring("four numbers from 0 to 255"));
}

TEST_CASE("IPv6 addresses may stand in brackets, and are printed so with their port") {
  CHECK(messaging::endpoint_name("::1", 29500) == "[::1]:29500");
  CHECK(messaging::endpoint_name("[::1]", 29500) == "[::1]:29500");
  CHECK(messaging::endpoint_name("10.0.0.1", 29500) == "10.0.0.1:29500");
  auto options = job_of(1);
  options.address = "[::1]";
  std::optional<live_agent> job;
  try {
    job.emplace(options);
  } catch (const bad_input& refused) {
    SKIP("this host has no IPv6: " << refused.what());
  }
  for (const char* address : {"[::1]", "::1"}) {
    auto client = job->client(0);
    client.address = address;
    auto unauthenticated = client;
    unauthenticated.secret = messaging::make_job_secret();
    CHECK_THAT(refusal_of(unauthenticated), ContainsSubstring("refused this process's job secret"));
  }
}

TEST_CASE("a name of the loopback device is no address for other hosts, localhost and numbers are meant so") {
  for (const char* meant : {"127.0.0.1", "localhost", "127.0.1.1"}) {
    auto made = listen_on_all(meant, 0, messaging::listening_for::whole_network);
    CHECK(made.note == "");
    CHECK(messaging::is_only_loopback(meant));
    int error = 0;
    CHECK(messaging::try_connect(meant, made.port, 5s, error));
  }
  CHECK_FALSE(messaging::is_only_loopback("10.0.0.1"));
  CHECK_FALSE(messaging::is_only_loopback("[fd00::1]"));
}

TEST_CASE(
    "where members may be on other hosts, an address that is forwarded here is listened for everywhere") {
  const char* foreign = "192.0.2.1";  // of no host: RFC 5737
  CHECK_THROWS_WITH(listen_on_all(foreign, 0, messaging::listening_for::this_host),
                    ContainsSubstring("--master-addr"));
  auto made = listen_on_all(foreign, 0, messaging::listening_for::whole_network);
  CHECK_THAT(made.note, ContainsSubstring("'192.0.2.1' is 192.0.2.1 here, which is no address of this host"));
  int error = 0;
  CHECK(messaging::try_connect("127.0.0.1", made.port, 5s, error));
}

TEST_CASE("a client waits for an agent that starts later") {
  auto listener = messaging::listen_on("127.0.0.1", 0);
  auto port = messaging::local_port(listener);
  listener.reset();
  auto options = job_of(1);
  options.secret = messaging::make_job_secret();
  options.port = port;
  agent_client_options wanted;
  wanted.port = port;
  wanted.secret = options.secret;
  auto joining = std::async(std::launch::async, [&] { return std::make_unique<test_member>(wanted); });
  live_agent job(options);
  auto member = joining.get();
  member->join();
  CHECK(member->views.next().generation == 1);
}

TEST_CASE("an agent that cannot be reached in time is named") {
  auto listener = messaging::listen_on("127.0.0.1", 0);
  agent_client_options options;
  options.port = messaging::local_port(listener);
  options.secret = messaging::make_job_secret();
  options.connect_timeout = 200ms;
  auto name = "127.0.0.1:" + std::to_string(options.port);
  SECTION("the port is open and never answers") {
    CHECK_THAT(refusal_of(options), ContainsSubstring(name) && ContainsSubstring("no answer"));
  }
  SECTION("no process listens on the port") {
    listener.reset();
    CHECK_THAT(refusal_of(options), ContainsSubstring(name) && ContainsSubstring("Connection refused"));
  }
}
