#include "troupe/node/node.hpp"

#include <unistd.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/actor/few_workers.hpp"
#include "troupe/cluster/agent.hpp"
#include "troupe/cluster/agent_client.hpp"
#include "troupe/cluster/job_secret.hpp"
#include "troupe/cluster/local_membership.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/error/job_refused.hpp"
#include "troupe/error/job_stopped.hpp"
#include "troupe/error/result_gone.hpp"
#include "troupe/node/event_router.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"
#include "troupe/transport/loopback_transport.hpp"
#include "troupe/transport/ucx_transport.hpp"

namespace troupe {
namespace {

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// How long a device that seemed not to return may still take.
constexpr auto stuck_grace = std::chrono::seconds(2);

std::string text_of_gone(const call_result& of) {
  return "this process was started again, and makes call number " + std::to_string(of.index) +
         " again, which gave it tensors of step " + std::to_string(of.steps_done) +
         ": no process keeps these any more, and training has gone on. Save what is needed of earlier steps "
         "with Trainer::save, which is not done again";
}

class real_node : public node {
 public:
  explicit real_node(const node_options& options) : options_(options) {
    if (options_.launch) {
      rank_ = options_.launch->rank;
      world_size_ = options_.launch->world_size;
      local_rank_ = options_.launch->local_rank;
      job_id_ = options_.launch->job_id;
    }
    if (job_id_.empty()) job_id_ = to_hex(make_job_secret()).substr(0, 16);
    faults_ = fault_plan(options_.fault, rank_, options_.launch ? options_.launch->incarnation : 0);
    connect();
    spawn_supervisor();
    try {
      join();
      agree_on_job_id();
    } catch (...) {
      stop_actors();
      throw;
    }
  }

  /// Ends together with the others: whoever is lost until then can still be brought back by those who are
  /// here.
  ~real_node() override {
    if (std::uncaught_exceptions() == 0) leave();
    if (!abandoned_) stop_actors();
  }

  void leave() override {
    if (ended_ || abandoned_ || std::exchange(leaving_, true)) return;
    try {
      if (world_size_ > 1) run({}, {});
      faults_.at(fault_point::leaving);
      members_->leave();
    } catch (const job_stopped&) {  // all its calls were made
    } catch (const job_failed& failure) {
      options_.log->error("{}", failure.what());
    } catch (const bad_input& refused) {
      options_.log->error("{}", refused.what());
    }
  }

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  int local_rank() const override { return local_rank_; }
  const std::string& job_id() const override { return job_id_; }

  void define(std::shared_ptr<const job_definition> job) override {
    auto numbered = std::make_shared<job_definition>(*job);
    numbered->number = num_jobs_++;
    numbered->first_call = next_call_;
    caf::anon_send(supervisor_, define_job{std::move(numbered)});
  }

  std::uint32_t add_source(std::shared_ptr<batch_source> source) override {
    caf::anon_send(supervisor_, troupe::add_source{std::move(source)});
    return num_sources_++;
  }

  void cancel_training() override { caf::anon_send(supervisor_, cancel_call{next_call_ - 1}); }

  call_result run(call_request request, const call_observer& observer) override {
    if (ended_) std::rethrow_exception(ended_);
    std::string refused;
    bool is_given = !request.gives_to(rank_);
    std::optional<call_result> waits_for_kept;
    request.index = next_call_++;
    caf::anon_send(supervisor_, enter_call{request});
    for (;;) {
      auto event = client_->take();
      if (auto* step = std::get_if<step_progress>(&event)) observer.on_step(*step);
      if (auto* report = std::get_if<recovery_report>(&event)) observer.on_recovered(*report);
      if (auto* gathered = std::get_if<gathered_tensors>(&event);
          gathered && gathered->call == request.index) {
        auto problem = observer.on_gathered(std::move(gathered->tensors));
        is_given = true;
        if (waits_for_kept) return *waits_for_kept;
        caf::anon_send(supervisor_, program_took{gathered->generation, request.index, problem});
      }
      if (auto* gone = std::get_if<gathered_gone>(&event); gone && gone->call == request.index)
        throw result_gone(text_of_gone(*waits_for_kept));
      if (std::holds_alternative<job_over>(event)) {
        if (leaving_) return {};
        end_with(job_failed(
            "the job is done: the others ended it while this process, which was lost, was started again"));
      }
      if (auto* stop = std::get_if<job_stop>(&event))
        end_with(job_stopped(stop->signal, "stopped " + stop->what));
      if (auto* failure = std::get_if<job_failure>(&event)) {
        if (!refused.empty()) end_with(job_refused(refused));
        end_with(job_failed(failure->cause));
      }
      if (auto* result = std::get_if<call_result>(&event); result && result->index == request.index) {
        if (result->refused.empty()) {
          // What is written by one process need not be written again.
          if (is_given || !result->problem.empty() || request.receiver >= 0) return *result;
          waits_for_kept = *result;
          caf::anon_send(supervisor_, fetch_kept{request});
          continue;
        }
        refused = result->refused;
        // Everyone has heard it before rank 0 does, and waits for the job's end: a process that ended at once
        // would be a lost one.
        if (rank_ == 0) fail(refused);
      }
    }
  }

  process_table& members() override { return router_.members; }
  store& keys() override { return members_->keys(); }
  const std::string& group_token() const override { return group_token_; }

  void fail(const std::string& cause) override { members_->fail_job(cause); }

  void request_stop(int signal, stop_scope scope) override { members_->request_stop(signal, scope); }
  int stop_signal() const override { return router_.stop_signal(); }
  bool job_ended() const override { return router_.has_ended(); }

  void abandon() override {
    if (abandoned_) return;
    abandoned_ = true;
    if (!ended_) members_->failing("");
    stop_actors();
  }

  /// Where nobody starts it again, its end is the job's.
  void tell_failure(const std::string& what) override {
    if (ended_) return;
    if (agent_ || (options_.launch && !options_.launch->launched_by_troupe))
      members_->fail_job(what);
    else
      members_->failing(what);
  }

  void write_trace(const std::filesystem::path& file) const override { trace_->write_perfetto(file); }

 private:
  /// Told to every later call too.
  template <class Error>
  [[noreturn]] void end_with(const Error& error) {
    ended_ = std::make_exception_ptr(error);
    throw error;
  }

  void connect() {
    if (world_size_ == 1 && !options_.launch) {
      group_token_ = derived_token(make_job_secret(), "groups");
      transport_ = make_loopback_transport(router_);
      members_ = make_local_membership(router_);
      return;
    }
    const auto& launch = *options_.launch;
    auto secret = job_secret(launch);
    group_token_ = derived_token(secret, "groups");
    if (!launch.launched_by_troupe && rank_ == 0) start_agent(launch, secret);
    ucx_transport_options ucx;
    ucx.rank = rank_;
    ucx.secret = secret;
    ucx.interface = options_.network_interface;
    ucx.verify_frames = options_.verify_frames;
    transport_ = make_ucx_transport(ucx, router_);
    agent_client_options client;
    client.address = launch.master_addr;
    client.port = launch.master_port;
    client.secret = secret;
    client.rank = rank_;
    client.world_size = world_size_;
    client.incarnation = launch.incarnation;
    client.connect_timeout = options_.join_timeout;
    members_ = connect_agent(client, router_);
  }

  /// The launcher's; without one rank 0 publishes a secret in a file, which does for one host.
  std::vector<std::byte> job_secret(const launch_environment& launch) {
    if (!launch.secret_hex.empty()) return parse_job_secret(launch.secret_hex);
    if (rank_ != 0)
      return wait_for_job_secret(launch.runtime_folder, launch.master_port, options_.join_timeout);
    published_ = std::make_unique<published_job_secret>(launch.runtime_folder, launch.master_port);
    return published_->secret();
  }

  /// Without a launcher rank 0 is the authority, and nobody respawns a lost process.
  void start_agent(const launch_environment& launch, const std::vector<std::byte>& secret) {
    agent_options made;
    made.address = launch.master_addr;
    made.port = launch.master_port;
    made.secret = secret;
    made.world_size = world_size_;
    made.join_timeout = options_.join_timeout;
    made.survives_losses = false;
    agent_ = make_agent(made, {});
  }

  void spawn_supervisor() {
    trace_ = std::make_unique<trace_recorder>(rank_);
    supervisor_options made;
    made.rank = rank_;
    made.world_size = world_size_;
    made.host = host_name();
    made.numeric_class = options_.numeric_class;
    made.out = transport_.get();
    made.members = members_.get();
    made.gate = &router_.gate;
    made.directory = &router_.directory;
    made.faults = &faults_;
    made.trace = trace_.get();
    made.fenced = router_.fenced;
    made.client = client_;
    made.log = options_.log;
    made.progress_timeout = options_.progress_timeout;
    made.stuck = stuck_;
    supervisor_ = system_.spawn<actor_of<supervisor_state>, caf::detached>(std::move(made));
    router_.attach(supervisor_);
  }

  void stop_actors() {
    router_.fenced->store(std::numeric_limits<std::uint64_t>::max());
    router_.attach({});
    caf::anon_send_exit(supervisor_, caf::exit_reason::user_shutdown);
    supervisor_ = {};
    await_actors();
    // Last: an actor that was still busy may have entered itself a moment ago, and its thread ends only when
    // nobody holds it.
    router_.gate.close();
    router_.directory.close();
  }

  /// A thread within code that does not return cannot be ended, nor what it uses be destroyed: the process
  /// ends with it. All others end soon.
  void await_actors() {
    std::promise<void> done;
    std::thread waiting([this, &done] {
      system_.await_all_actors_done();
      done.set_value();
    });
    auto ended = done.get_future();
    while (ended.wait_for(std::chrono::milliseconds(500)) != std::future_status::ready) {
      if (!*stuck_) continue;
      if (ended.wait_for(stuck_grace) == std::future_status::ready) break;
      end_while_stuck();
    }
    waiting.join();
  }

  /// Without a way back to the program, which would have said why.
  [[noreturn]] void end_while_stuck() const {
    std::string why;
    try {
      if (ended_) std::rethrow_exception(ended_);
    } catch (const std::exception& end) {
      why = end.what() + std::string(". ");
    }
    std::fprintf(stderr,
                 "%sThis process ends here: a device or loader does not return from the code it is in\n",
                 why.c_str());
    std::fflush(nullptr);
    std::_Exit(1);
  }

  void join() {
    member self;
    self.rank = rank_;
    self.incarnation = options_.launch ? options_.launch->incarnation : 0;
    self.pid = ::getpid();
    self.host = host_name();
    self.numeric_class = options_.numeric_class;
    self.address = transport_->begin_generation(0);
    members_->join(self);
  }

  /// Started by hand, processes have an id that may come again, such as a port, and snapshots of an earlier
  /// job with that id may be around: what tells this job from it is drawn by rank 0.
  void agree_on_job_id() {
    if (!options_.launch || options_.launch->launched_by_troupe) return;
    const std::string key = "job/drawn";
    if (rank_ == 0) {
      auto text = to_hex(make_job_secret()).substr(0, 8);
      members_->keys().put(key, std::as_bytes(std::span(text)));
    }
    std::optional<std::vector<std::byte>> drawn;
    while (!drawn) drawn = members_->keys().get(key, options_.join_timeout);  // throws when the job ends
    job_id_ += "/" + std::string(reinterpret_cast<const char*>(drawn->data()), drawn->size());
  }

  node_options options_;
  int rank_ = 0, world_size_ = 1, local_rank_ = 0;
  std::string job_id_, group_token_;
  fault_plan faults_;
  std::shared_ptr<std::atomic<bool>> stuck_ = std::make_shared<std::atomic<bool>>(false);
  std::uint32_t num_jobs_ = 0;
  bool leaving_ = false;  ///< the program makes no more calls
  bool abandoned_ = false;
  std::exception_ptr ended_;  ///< how the job ended
  std::uint32_t next_call_ = 0, num_sources_ = 0;

  // From the last to be needed to the first: destroyed in reverse order.
  std::shared_ptr<client_mailbox> client_ = std::make_shared<client_mailbox>();
  std::unique_ptr<trace_recorder> trace_;
  event_router router_{options_.launch ? options_.launch->rank : 0,
                       options_.launch ? options_.launch->world_size : 1};
  std::unique_ptr<published_job_secret> published_;
  std::unique_ptr<agent> agent_;
  caf::actor_system_config config_;
  caf::actor_system system_{with_few_workers(config_)};
  std::unique_ptr<transport> transport_;
  std::unique_ptr<membership> members_;
  caf::actor supervisor_;
};

}  // namespace

std::unique_ptr<node> node::start(const node_options& options) {
  return std::make_unique<real_node>(options);
}

}  // namespace troupe
