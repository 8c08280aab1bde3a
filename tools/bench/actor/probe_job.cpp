#include "bench/actor/probe_job.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <cstdio>
#include <future>
#include <map>
#include <stdexcept>

#include "bench/actor/probe_actor.hpp"
#include "bench/processes/bench_process.hpp"
#include "bench/processes/own_transport.hpp"
#include "troupe/actor/receiving_actor.hpp"
#include "troupe/actor/use_two_workers.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

/// Messages of a stream that may be unanswered.
constexpr std::uint64_t stream_window = 8;

/// Every process makes one transport, of one generation.
constexpr std::uint64_t generation = 1;

/// A probe actor with a transport and an actor system of its own, apart from those of the job.
class connected_probe : public transport::transport_events {
 public:
  connected_probe(actors::process::process& self, const probe_job& job)
      : transport_(make_ucx_transport(transport_options_of(self, job), *this)),
        actor_(system_.spawn<actors::actor::receiving_actor<probe_state>, caf::detached>(
            *transport_, probe_options{1 - self.rank(), generation, transport_.get()})) {
    transport_->connect(generation, exchange_addresses(self, "probe", transport_->begin_generation(0)));
  }

  ~connected_probe() override {
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    system_.await_all_actors_done();
    transport_.reset();  // whose thread sends to the actor until then
  }

  void on_control(int, std::uint64_t, std::span<const std::byte>) override {}
  void on_tensor(int, const transport::tensor_tag& tag, tensor value) override {
    send(probe_arrived{tag, std::move(value)});
  }
  void on_peer_error(int, std::uint64_t, const std::string&) override {}  // the launcher ends the job

  template <class Message>
  void send(Message message) {
    caf::anon_send(actor_, std::move(message));
  }

  /// Sends to the other process's probe and waits for its answers.
  probe_times ask(const probe_plan& plan) {
    auto result = std::make_shared<std::promise<probe_times>>();
    send(start_probe{plan, [result](probe_times times) { result->set_value(std::move(times)); }});
    return result->get_future().get();
  }

 private:
  static transport::ucx_transport_options transport_options_of(const actors::process::process& self,
                                                               const probe_job& job) {
    auto options = own_transport_options(self);
    options.data_transports = job.transports;
    return options;
  }

  std::unique_ptr<transport::transport> transport_;
  caf::actor_system_config config_;
  caf::actor_system system_{actors::actor::use_two_workers(config_)};
  caf::actor actor_;
};

void measure(connected_probe& probe, const probe_job& job) {
  probe_plan plan{.size_bytes = job.size_bytes,
                  .messages = job.round_trips,
                  .spin = std::chrono::microseconds(job.spin_us)};
  auto times = probe.ask(plan);
  std::vector<double> halves_us;
  for (std::size_t i = 1; i < times.size(); ++i)
    halves_us.push_back(0.5e-3 * static_cast<double>(times[i] - times[i - 1]));
  plan.messages = job.stream_messages;
  plan.window = stream_window;
  plan.answer_in_full = false;
  times = probe.ask(plan);
  auto bytes = static_cast<double>(plan.messages) * static_cast<double>(job.size_bytes);
  auto GBps = bytes / static_cast<double>(times.back() - times.front());  // bytes a nanosecond
  nlohmann::json line{{"bytes", job.size_bytes}, {"half_trips_us", halves_us}, {"stream_GBps", GBps}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

void run_probe(const probe_job& job) {
  auto self = start_launched_process();
  if (self->world_size() != 2) throw bad_input("probe is one of two processes of `troupe launch`");
  connected_probe probe(*self, job);
  if (self->rank() == 0)
    measure(probe, job);
  else
    probe.send(answer_probes{std::chrono::microseconds(job.spin_us)});
  self->leave();  // together with the other process: the answering one answers until then
}

}  // namespace troupe::bench
