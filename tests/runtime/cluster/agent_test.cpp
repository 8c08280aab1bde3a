// What members of a job tell each other through its agent, until it ends.
#include "troupe/cluster/agent.hpp"

#include <sys/socket.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <future>
#include <thread>

#include "live_agent.hpp"
#include "troupe/messaging/tcp_socket.hpp"

using namespace troupe;
using namespace troupe::cluster;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Carries bytes between a member and the agent until it is told to carry no more, with both connections
/// open: a host or a network that vanishes.
class relay {
 public:
  explicit relay(std::uint16_t agent_port)
      : listener_(messaging::listen_on("127.0.0.1", 0)), agent_port_(agent_port) {
    thread_ = std::thread([this] { carry(); });
  }
  ~relay() {
    ending_ = true;
    thread_.join();
  }
  std::uint16_t port() const { return messaging::local_port(listener_); }
  void vanish() { vanished_ = true; }

 private:
  void carry() {
    posix::unique_fd member, agent;
    std::vector<std::byte> to_agent, to_member;
    while (!ending_) {
      std::this_thread::sleep_for(1ms);
      int error = 0;
      if (!member)
        member = posix::unique_fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (member && !agent) agent = messaging::try_connect("127.0.0.1", agent_port_, 5s, error);
      if (!agent || vanished_) continue;
      messaging::read_available(member.get(), to_agent, 65536);
      messaging::read_available(agent.get(), to_member, 65536);
      messaging::write_available(agent.get(), to_agent);
      messaging::write_available(member.get(), to_member);
    }
  }

  posix::unique_fd listener_;
  std::uint16_t agent_port_;
  std::atomic<bool> vanished_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a member whose agent's host vanishes ends within a limit with an error") {
  auto options = job_of(1);
  options.heartbeat = 50ms;
  live_agent job(options);
  relay between(job.made->port());
  auto client = job.client(0);
  client.port = between.port();
  client.agent_timeout = 3000ms;
  test_member member(client);
  member.join();
  member.views.next();
  std::this_thread::sleep_for(4000ms);
  CHECK(member.ends.empty());  // it hears the agent's heartbeats
  between.vanish();
  CHECK_THAT(member.ends.next(),
             ContainsSubstring("has sent no heartbeat for 3") && ContainsSubstring("--resume"));
}

TEST_CASE(
    "the failure that a member reports is known when its process ends, and the member is not suspected "
    "meanwhile") {
  live_agent job(job_of(2));
  auto first = std::make_unique<test_member>(job.client(0)),
       second = std::make_unique<test_member>(job.client(1));
  first->join();
  second->join();
  first->views.next();
  second->link->failing("");
  second->link->failing("no such file", failure_kind::bad_input);
  second->link.reset();
  auto said = job.made->failure_of(1, 60s);
  CHECK(said.message == "no such file");
  CHECK(said.kind == failure_kind::bad_input);
  first->link->suspect(1, "its connection broke");
  job.made->process_lost(1, "exit code 1: no such file", std::chrono::steady_clock::now(), {});
  CHECK(first->fences.next().losses.at(0).cause == "exit code 1: no such file");
  CHECK(job.kills.empty());
  CHECK(job.made->failure_of(1, 60s).message.empty());
}

TEST_CASE(
    "the agent waits for a member's failure report until its connection has ended, or up to the limit") {
  live_agent job(job_of(2));
  auto first = std::make_unique<test_member>(job.client(0)),
       second = std::make_unique<test_member>(job.client(1));
  first->join();
  second->join();
  first->views.next();
  CHECK(job.made->failure_of(0, 1ms).message.empty());
  auto said_by = [&](int rank) {
    return std::async(std::launch::async, [&, rank] { return job.made->failure_of(rank, 600s); });
  };
  auto late = said_by(1), never = said_by(0);
  second->link->failing("");
  second->link->failing("the file is late");
  CHECK(late.get().message == "the file is late");
  first->link.reset();
  CHECK(never.get().message.empty());
}

TEST_CASE("an agent that did not run for long says so, and not one that was late") {
  CHECK(text_of_gap(5s).empty());
  CHECK_THAT(text_of_gap(75s), ContainsSubstring("did not run for 75 s") && ContainsSubstring("Ctrl-Z") &&
                                   ContainsSubstring("goes on"));
}

TEST_CASE("a job is told of a stop, and ends with the step that was saved") {
  live_agent job(job_of(2));
  test_member first(job.client(0)), second(job.client(1));
  first.join();
  second.join();
  first.views.next();
  CHECK(job.made->stop_job(15) == std::vector{0, 1});
  CHECK(first.stops.next() == 15);
  CHECK(second.stops.next() == 15);
  first.link->stopped("at step 7");
  CHECK(first.stopped.next() == "at step 7");
  CHECK(second.stopped.next() == "at step 7");
  CHECK(second.ends.empty());
}

TEST_CASE("members join, see each other, and recover from a loss without restarting the survivors") {
  live_agent job(job_of(3));
  test_member first(job.client(0)), second(job.client(1));
  auto third = std::make_unique<test_member>(job.client(2));
  for (auto* member : {&first, &second, third.get()}) member->join();
  for (auto* member : {&first, &second, third.get()}) {
    auto view = member->views.next();
    CHECK(view.generation == 1);
    CHECK(view.members.size() == 3);
    CHECK(view.members.at(2).pid == 102);
  }
  CHECK(job.views.next().generation == 1);

  third.reset();
  auto died = std::chrono::steady_clock::now();
  CHECK(job.made->process_lost(2, "killed by SIGKILL", died, died) == loss_outcome::await_replacement);
  for (auto* member : {&first, &second}) {
    auto fence = member->fences.next();
    CHECK(fence.generation == 2);
    CHECK(fence.losses == std::vector{member_loss{2, "killed by SIGKILL"}});
    member->link->quiesced(2, {{std::byte{1}, std::byte{2}}, {std::byte{3}}});
  }
  test_member replacement(job.client(2, 1));
  replacement.join();
  for (auto* member : {&first, &second, &replacement}) {
    auto view = member->views.next();
    CHECK(view.generation == 2);
    CHECK(view.members.at(2).incarnation == 1);
    CHECK(view.members.at(0).address ==
          transport::process_address{{std::byte{1}, std::byte{2}}, {std::byte{3}}});
  }
  first.link->report({2, 7, 100, 0.5});
  CHECK(job.progress.next() == job_progress{2, 7, 100, 0.5});
  for (auto phase : {recovery_phase::restored, recovery_phase::rebuilt, recovery_phase::replayed})
    first.link->report(2, phase);
  auto report = second.reports.next();
  CHECK(report.loss == member_loss{2, "killed by SIGKILL"});
  CHECK(report.generation == 2);
  CHECK(report.total_s == job.reports.next().total_s);
  CHECK(report.total_s > 0);
}

TEST_CASE("a request for a generation fences every member and names the cause") {
  live_agent job(job_of(2));
  test_member first(job.client(0)), second(job.client(1));
  first.join();
  second.join();
  first.views.next();
  second.link->request_generation(1, "stage 1: not a number");
  for (auto* member : {&first, &second}) {
    auto fence = member->fences.next();
    CHECK(fence.losses.at(0).rank == -1);
    CHECK(fence.losses.at(0).cause == "rank 1: stage 1: not a number");
    member->link->quiesced(fence.generation, {});
  }
  CHECK(first.views.next().generation == 2);
}

TEST_CASE("a suspect is killed by the agent's owner, unless it has ended already") {
  live_agent job(job_of(2));
  test_member first(job.client(0));
  auto second = std::make_unique<test_member>(job.client(1));
  first.join();
  second->join();
  first.views.next();
  first.link->suspect(1, "control connection broke");
  auto kill = job.kills.next();
  CHECK(kill.rank == 1);
  CHECK(kill.incarnation == 0);
  CHECK(kill.cause == "control connection broke");
}

TEST_CASE("a silent member is killed, one that is slow in its events is not") {
  auto options = job_of(2);
  options.suspect_after = 2s;
  live_agent job(options);
  auto silent_options = job.client(1);
  silent_options.heartbeat = 1h;
  test_member beating(job.client(0)), silent(silent_options);
  beating.join();
  silent.join();
  auto kill = job.kills.next();
  CHECK(kill.rank == 1);
  CHECK_THAT(kill.cause, ContainsSubstring("no heartbeat"));
  CHECK(job.kills.empty());
}

TEST_CASE("a member's failure ends the job for all") {
  live_agent job(job_of(2));
  test_member first(job.client(0)), second(job.client(1));
  first.join();
  second.join();
  first.views.next();
  second.link->fail_job("the data are damaged", failure_kind::bad_input);
  CHECK(first.ends.next() == "rank 1 ended the job: the data are damaged (bad input)");
  CHECK(second.ends.next() == "rank 1 ended the job: the data are damaged (bad input)");
  CHECK(job.failures.next() == "rank 1 ended the job: the data are damaged");
  CHECK(test_member(job.client(0)).ends.next() == "rank 1 ended the job: the data are damaged (bad input)");
}

TEST_CASE("the owner's failure ends the job for all, also for those that have only connected") {
  live_agent job(job_of(2));
  test_member first(job.client(0)), second(job.client(1));
  first.join();
  job.made->fail_job("rank 3 failed first");
  CHECK(first.ends.next() == "rank 3 failed first");
  CHECK(second.ends.next() == "rank 3 failed first");
  auto now = std::chrono::steady_clock::now();
  CHECK(job.made->process_lost(0, "exit code 1", now, {}) == loss_outcome::job_failed);
}

TEST_CASE("the first leave tells the others that the job is over, and a later loss is ignored") {
  live_agent job(job_of(3));
  test_member first(job.client(0)), second(job.client(1));
  auto third = std::make_unique<test_member>(job.client(2));
  for (auto* member : {&first, &second, third.get()}) member->join();
  second.views.next();
  second.link->leave();
  first.overs.next();
  third->overs.next();
  third.reset();
  auto now = std::chrono::steady_clock::now();
  CHECK(job.made->process_lost(2, "killed by SIGKILL", now, {}) == loss_outcome::not_needed);
  first.link->leave();
  first.link.reset();
  CHECK(job.failures.empty());
}

TEST_CASE("a leave that was sent before the end of a process counts, however it ended") {
  live_agent job(job_of(2));
  test_member first(job.client(0));
  auto second = std::make_unique<test_member>(job.client(1));
  first.join();
  second->join();
  second->views.next();
  second->link->leave();
  second.reset();
  auto now = std::chrono::steady_clock::now();
  CHECK(job.made->process_lost(1, "killed by SIGSEGV", now, {}) == loss_outcome::had_left);
  first.link->leave();
  first.link.reset();
  job.made->process_exited(0);
  CHECK(job.made->process_lost(0, "no", now, {}) == loss_outcome::had_left);
  CHECK(job.failures.empty());
}

TEST_CASE("an exit with code 0 without leaving fails the job") {
  live_agent job(job_of(2));
  test_member first(job.client(0));
  auto second = std::make_unique<test_member>(job.client(1));
  first.join();
  second->join();
  first.views.next();
  second.reset();
  job.made->process_exited(1);
  CHECK_THAT(first.ends.next(), ContainsSubstring("rank 1") && ContainsSubstring("without leaving"));
}

TEST_CASE("without a launcher a closed connection ends the job and names the rank") {
  auto options = job_of(2);
  options.replaces_lost_members = false;
  live_agent job(options);
  test_member first(job.client(0));
  auto second = std::make_unique<test_member>(job.client(1));
  first.join();
  second->join();
  first.views.next();
  second.reset();
  CHECK_THAT(first.ends.next(), ContainsSubstring("rank 1 was lost") && ContainsSubstring("snapshot"));
}

TEST_CASE("an agent that disappears ends the job for its members") {
  std::optional<live_agent> job(job_of(2));
  test_member first(job->client(0)), second(job->client(1));
  first.join();
  second.join();
  first.views.next();
  job.reset();
  CHECK_THAT(first.ends.next(), ContainsSubstring("agent at 127.0.0.1") && ContainsSubstring("snapshot"));
  CHECK_THAT(second.ends.next(), ContainsSubstring("is gone"));
}

TEST_CASE("the agent in rank 0 waits for the others to leave") {
  auto options = job_of(2);
  options.replaces_lost_members = false;
  options.secret = messaging::make_job_secret();
  options.linger = 60s;
  auto agent = make_agent(options, {});
  agent_client_options client;
  client.port = agent->port();
  client.secret = options.secret;
  client.world_size = 2;
  test_member first(client);
  client.rank = 1;
  test_member second(client);
  first.join();
  second.join();
  second.views.next();
  first.link->leave();
  first.link.reset();
  auto stopped = std::async(std::launch::async, [&] { agent.reset(); });
  second.link->leave();
  second.link.reset();
  stopped.get();
  CHECK(second.ends.empty());
}

TEST_CASE("a leave counts although the connection closes right after it") {
  auto options = job_of(2);
  options.replaces_lost_members = false;
  for (int round = 0; round < 50; ++round) {
    live_agent another(options);
    test_member first(another.client(0)), second(another.client(1));
    first.join();
    second.join();
    first.views.next();
    first.link->leave();
    first.link.reset();
    second.link->leave();
    second.link.reset();
    another.made.reset();
    CHECK(another.failures.empty());
  }
}

TEST_CASE("long reasons are cut, and addresses too long for a frame are refused at the call") {
  live_agent job(job_of(1));
  test_member member(job.client(0));
  member.join();
  member.views.next();
  CHECK_THROWS_AS(member.link->quiesced(1, {std::vector<std::byte>(1 << 17), {}}), std::invalid_argument);
  member.link->fail_job(std::string(1 << 20, 'x'));
  auto cause = member.ends.next();
  CHECK_THAT(cause, ContainsSubstring("rank 0 ended the job: xxx"));
  CHECK(cause.size() < 5000);
}
