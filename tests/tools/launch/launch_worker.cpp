// A member of a job that does nothing but take part: it joins, acknowledges fences, says what it sees, and
// ends as told.
//
//   launch_worker LEAVE_AT [RANK.INCARNATION=BEHAVIOUR]...
//   launch_worker refuse-pidfd PROGRAM [ARGUMENT]...
//
// The second form becomes PROGRAM, to which pidfd_open is refused; exit code 77: there are no such filters.
// With ignore-sigchld in place of refuse-pidfd, PROGRAM starts with SIGCHLD ignored, which dash cannot do.
// It leaves once it has a view of generation LEAVE_AT or later (0: never), unless a behaviour is given for
// it:
//   exit-N, kill, stop        what it does to itself at its first view
//   kill-early                the same before it joins
//   no-join                   it never joins
//   late                      it joins after 3 s
//   catch                     it never joins, and on SIGTERM or SIGINT says so and ends with code 0
//   ignore                    it ignores both, and that the job is to stop
//   deaf                      it ignores that the job is to stop; a signal kills it
//   fail-TEXT                 says at its first view that it fails with TEXT, then exits with code 1
//   refuse-TEXT               ends the job at its first view as refused with TEXT, then waits for a signal
//   crash-after-leave         leaves as usual, then kills itself
//   leave-at-fence            leaves when another process was lost, before that one is replaced
//   over-exit-N, over-kill    waits until another has left and the job is over, then does that to itself
// Rank 0 plays the scheduler: it reports ten steps for each view and the phases of each recovery.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "troupe/cluster/agent_client.hpp"
#include "troupe/config/environment/events_environment.hpp"
#include "troupe/config/environment/launch_environment.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/messaging/job_secret.hpp"
#include "troupe/trace/recording.hpp"

namespace {

std::string variable(const char* name) { return troupe::process_environment()(name).value_or(""); }

struct worker_events : troupe::cluster::membership_events {
  void on_fence(std::uint64_t generation, const std::vector<troupe::cluster::member_loss>&) override {
    with_link([&](troupe::cluster::membership& link) { link.quiesced(generation, {}); });
    std::lock_guard lock(mutex);
    is_fenced = true;
    changed.notify_all();
  }
  void on_view(const troupe::cluster::membership_view& view) override {
    std::printf("view %d of %d members, incarnation %s, pid %d\n", static_cast<int>(view.generation),
                static_cast<int>(view.members.size()), variable("TROUPE_INCARNATION").c_str(), ::getpid());
    std::lock_guard lock(mutex);
    generation = view.generation;
    changed.notify_all();
  }
  void on_recovered(const troupe::cluster::recovery_report&) override {}
  void on_job_done() override {
    std::lock_guard lock(mutex);
    is_done = true;
    changed.notify_all();
  }
  void on_stop(int signal) override {
    std::printf("is to stop by %d\n", signal);
    if (variable("RANK") == "0" && !ignores_stops)
      with_link([&](troupe::cluster::membership& to) { to.stopped("at step 10, which is saved"); });
  }
  void on_job_stopped(int signal, const std::string& what) override {
    std::printf("the job was stopped: %s\n", what.c_str());
    std::fflush(stdout);
    if (!ignores_stops) ::_exit(128 + signal);
  }
  void on_job_failed(const std::string& cause, troupe::failure_kind /*kind*/) override {
    std::printf("the job ended: %s\n", cause.c_str());
    std::fflush(stdout);
    ::_exit(1);
  }

  /// The first events may come before connect_agent has returned to main.
  template <class Use>
  void with_link(Use use) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return link != nullptr; });
    use(*link);
  }

  std::mutex mutex;
  std::condition_variable changed;
  troupe::cluster::membership* link = nullptr;
  std::uint64_t generation = 0;
  bool is_done = false, is_fenced = false;
  bool ignores_stops = false;
};

[[noreturn]] void behave(const std::string& behaviour) {
  std::fflush(stdout);
  if (behaviour.starts_with("exit-")) ::_exit(std::atoi(behaviour.c_str() + 5));
  ::raise(behaviour == "stop" ? SIGSTOP : SIGKILL);
  ::_exit(99);
}

void on_signal(int) {
  constexpr char said[] = "caught the signal\n";
  [[maybe_unused]] auto wrote = ::write(1, said, sizeof said - 1);
  ::_exit(0);
}

void prepare_signals(const std::string& behaviour) {
  if (behaviour != "catch" && behaviour != "ignore") return;
  for (int number : {SIGTERM, SIGINT}) ::signal(number, behaviour == "catch" ? on_signal : SIG_IGN);
}

void act_as_scheduler(troupe::cluster::membership& link, std::uint64_t generation) {
  using enum troupe::cluster::recovery_phase;
  if (generation > 1)
    for (auto phase : {restored, rebuilt, replayed}) link.report(generation, phase);
  for (std::uint64_t step = 1; step <= 10; ++step) link.report({generation, step, 10, 0.5});
}

[[noreturn]] void become_without_pidfd(char** command) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(77);
  ::execvp(command[0], command);
  ::_exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "refuse-pidfd") become_without_pidfd(argv + 2);
  if (argc > 2 && std::string(argv[1]) == "ignore-sigchld") {
    std::signal(SIGCHLD, SIG_IGN);
    ::execvp(argv[2], argv + 2);
    return 127;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  auto self = variable("RANK") + "." + variable("TROUPE_INCARNATION") + "=";
  auto leave_at = std::strtoull(argc > 1 ? argv[1] : "1", nullptr, 10);
  std::string behaviour;
  for (int i = 2; i < argc; ++i)
    if (std::string(argv[i]).starts_with(self)) behaviour = argv[i] + self.size();
  auto events_of = troupe::config::read_events_environment(troupe::process_environment());
  troupe::trace::start_recording({.events_per_thread = events_of.events_per_thread, .file = events_of.file});
  troupe::trace::emit_now(
      {.step = 41, .stage = 2, .microbatch = 3, .kind = troupe::trace::trace_kind::forward});
  prepare_signals(behaviour);
  if (behaviour == "kill-early") behave(behaviour);
  if (behaviour == "no-join" || behaviour == "catch") {
    std::printf("not joining, pid %d\n", ::getpid());
    while (true) ::pause();
  }

  if (behaviour == "late") std::this_thread::sleep_for(std::chrono::seconds(3));

  worker_events events;
  events.ignores_stops = behaviour == "ignore" || behaviour == "deaf";
  troupe::cluster::agent_client_options options;
  options.address = variable("MASTER_ADDR");
  options.port = static_cast<std::uint16_t>(std::stoi(variable("MASTER_PORT")));
  options.secret = troupe::messaging::parse_job_secret(variable("TROUPE_JOB_SECRET"));
  options.rank = std::stoi(variable("RANK"));
  options.world_size = std::stoi(variable("WORLD_SIZE"));
  options.incarnation = static_cast<std::uint32_t>(std::stoi(variable("TROUPE_INCARNATION")));
  std::unique_ptr<troupe::cluster::membership> link;
  try {
    link = troupe::cluster::connect_agent(options, events);
  } catch (const troupe::bad_input& refused) {
    std::printf("%s\n", refused.what());
    return 2;
  }
  {
    std::lock_guard lock(events.mutex);
    events.link = link.get();
    events.changed.notify_all();
  }
  link->join({options.rank, options.incarnation, ::getpid(), "here", "avx2", {}});
  for (std::uint64_t seen = 0; leave_at == 0 || seen < leave_at;) {
    {
      std::unique_lock lock(events.mutex);
      events.changed.wait(lock, [&] { return events.generation > seen; });
      seen = events.generation;
    }
    if (behaviour.starts_with("fail-")) {
      link->failing(behaviour.substr(5));
      link.reset();
      ::_exit(1);
    }
    if (behaviour.starts_with("refuse-")) {
      link->fail_job(behaviour.substr(7), troupe::failure_kind::bad_input);
      while (true) ::pause();
    }
    if (!behaviour.empty() && behaviour != "deaf" && behaviour != "ignore" &&
        behaviour != "crash-after-leave" && behaviour != "leave-at-fence" && !behaviour.starts_with("over-"))
      behave(behaviour);
    if (options.rank == 0) act_as_scheduler(*link, seen);
  }
  if (behaviour == "leave-at-fence") {
    std::unique_lock lock(events.mutex);
    events.changed.wait(lock, [&] { return events.is_fenced; });
  }
  if (behaviour.starts_with("over-")) {
    std::unique_lock lock(events.mutex);
    events.changed.wait(lock, [&] { return events.is_done; });
    behave(behaviour.substr(5));
  }
  link->leave();
  link.reset();
  if (behaviour == "crash-after-leave") behave("kill");
  return 0;
}
