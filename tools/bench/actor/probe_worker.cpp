// One of two processes whose probe actors send tensors to each other. Rank 0 prints the times of half a round
// trip and the rate of a stream.
#include <unistd.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "bench/actor/actor_jobs.hpp"
#include "bench/actor/probe_actor.hpp"
#include "bench/benches.hpp"
#include "bench/measure/arguments.hpp"
#include "troupe/actor/receiving_actor.hpp"
#include "troupe/actor/use_two_workers.hpp"
#include "troupe/cluster/agent_client.hpp"
#include "troupe/cluster/job_secret.hpp"
#include "troupe/config/launch_environment.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/transport/ucx_transport.hpp"

namespace troupe::bench {
namespace {

/// A probe actor in an actor system of its own. All methods are thread-safe.
class spawned_probe {
 public:
  explicit spawned_probe(const probe_options& options)
      : actor_(system_.spawn<receiving_actor<probe_state>, caf::detached>(*options.link, options)) {}

  ~spawned_probe() {
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = {};
    system_.await_all_actors_done();
  }

  /// Sends to the other process's probe and waits for its answers. Throws std::runtime_error if that process
  /// is lost meanwhile.
  probe_times ask(const probe_plan& plan) {
    auto result = std::make_shared<std::promise<probe_times>>();
    send(start_probe{plan, [result](probe_times times, const std::string& failure) {
                       if (failure.empty())
                         result->set_value(std::move(times));
                       else
                         result->set_exception(std::make_exception_ptr(std::runtime_error(failure)));
                     }});
    return result->get_future().get();
  }

  template <class Message>
  void send(Message message) {
    caf::anon_send(actor_, std::move(message));
  }

 private:
  caf::actor_system_config config_;
  caf::actor_system system_{use_two_workers(config_)};
  caf::actor actor_;
};

class probing_process : public transport_events, public membership_events {
 public:
  probing_process(const probe_job& job, const launch_environment& launch) : job_(job), launch_(launch) {}
  void run();

  void on_control(int, std::uint64_t, std::span<const std::byte>) override {}
  void on_tensor(int, const tensor_tag& tag, tensor value) override;
  void on_peer_error(int, const std::string& cause) override { end(cause); }
  void on_fence(std::uint64_t, const std::vector<member_loss>&) override {
    end("the other process was lost");
  }
  void on_view(const membership_view& view) override;
  void on_recovered(const recovery_report&) override {}
  void on_job_done() override { end(""); }
  void on_job_failed(const std::string& cause) override { end(cause); }
  void on_stop(int) override { end("the job is to stop"); }
  void on_job_stopped(int, const std::string& what) override { end("the job was stopped: " + what); }

 private:
  void end(const std::string& cause);
  void connect(const membership_view& view);
  void measure();

  probe_job job_;
  launch_environment launch_;
  std::unique_ptr<transport> transport_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<membership_view> view_;
  std::optional<std::string> ended_;  ///< why; empty if all is done
  std::unique_ptr<spawned_probe> probe_;
  std::vector<probe_arrived> early_;  ///< came before there was a probe
};

void probing_process::on_view(const membership_view& view) {
  std::lock_guard lock(mutex_);
  view_ = view;
  changed_.notify_all();
}

void probing_process::on_tensor(int, const tensor_tag& tag, tensor value) {
  std::lock_guard lock(mutex_);
  probe_arrived arrived{tag, std::move(value)};
  probe_ ? probe_->send(std::move(arrived)) : early_.push_back(std::move(arrived));
}

void probing_process::end(const std::string& cause) {
  std::lock_guard lock(mutex_);
  if (!ended_) ended_ = cause;
  if (probe_) probe_->send(probe_lost{cause});
  changed_.notify_all();
}

void probing_process::connect(const membership_view& view) {
  std::map<int, node_address> peers;
  for (const auto& one : view.members) peers[one.rank] = one.address;
  transport_->connect(view.generation, peers);
  std::lock_guard lock(mutex_);
  probe_ =
      std::make_unique<spawned_probe>(probe_options{1 - launch_.rank, view.generation, transport_.get()});
  for (auto& early : early_) probe_->send(std::move(early));
}

void probing_process::measure() {
  probe_plan plan;
  plan.size_bytes = job_.size_bytes;
  plan.spin = std::chrono::microseconds(job_.spin_us);
  plan.messages = job_.round_trips;
  auto times = probe_->ask(plan);
  std::vector<double> halves_us;
  for (std::size_t i = 1; i < times.size(); ++i)
    halves_us.push_back(0.5e-3 * static_cast<double>(times[i] - times[i - 1]));
  plan.messages = job_.stream_messages;
  plan.window = job_.window;
  plan.answer_in_full = false;
  times = probe_->ask(plan);
  auto bytes = static_cast<double>(plan.messages) * static_cast<double>(job_.size_bytes);
  auto GBps = bytes / static_cast<double>(times.back() - times.front());  // bytes a nanosecond
  nlohmann::json line{{"bytes", job_.size_bytes}, {"half_trips_us", halves_us}, {"stream_GBps", GBps}};
  std::printf("%s\n", line.dump().c_str());
}

void probing_process::run() {
  ucx_transport_options ucx;
  ucx.rank = launch_.rank;
  ucx.secret = parse_job_secret(launch_.secret_hex);
  ucx.data_transports = job_.transports;
  transport_ = make_ucx_transport(ucx, *this);
  agent_client_options client;
  client.address = launch_.master_addr;
  client.port = launch_.master_port;
  client.secret = ucx.secret;
  client.rank = launch_.rank;
  client.world_size = launch_.world_size;
  auto members = connect_agent(client, *this);
  members->join({launch_.rank, 0, ::getpid(), "", "none", transport_->begin_generation(0)});
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return view_ || ended_; });
  if (ended_) throw std::runtime_error(*ended_);
  lock.unlock();
  connect(*view_);
  if (launch_.rank == 0) {
    measure();
  } else {
    probe_->send(answer_probes{std::chrono::microseconds(job_.spin_us)});
    lock.lock();
    changed_.wait(lock, [this] { return ended_.has_value(); });
    lock.unlock();
  }
  members->leave();
  members.reset();
  lock.lock();
  auto probe = std::move(probe_);
  lock.unlock();
  probe.reset();
  transport_.reset();
}

void run(const probe_job& job) {
  auto launch = read_launch_environment(process_environment());
  if (!launch || launch->world_size != 2) throw bad_input("probe is one of two processes of `troupe launch`");
  probing_process(job, *launch).run();
}

}  // namespace

void add_probe_worker(CLI::App& workers) {
  add_worker(workers, "probe", [](const nlohmann::json& job) { run(job.get<probe_job>()); });
}

}  // namespace troupe::bench
