#include "troupe/probe/link_probe.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>
#include <future>
#include <stdexcept>
#include <utility>

#include "troupe/actor/few_workers.hpp"
#include "troupe/actor/receiving_actor.hpp"
#include "troupe/probe/probe_actor.hpp"

namespace troupe {
namespace {

class spawned_probe final : public link_probe {
 public:
  explicit spawned_probe(const link_probe_options& options)
      : actor_(system_.spawn<receiving_actor<probe_state>, caf::detached>(
            *options.link, probe_options{options.peer_rank, options.generation, options.link})) {}

  ~spawned_probe() override {
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = {};
    system_.await_all_actors_done();
  }

  probe_times ask(const probe_plan& plan) override {
    auto result = std::make_shared<std::promise<probe_times>>();
    caf::anon_send(
        actor_, start_probe{plan, [result](probe_times times, const std::string& failure) {
                              if (failure.empty())
                                result->set_value(std::move(times));
                              else
                                result->set_exception(std::make_exception_ptr(std::runtime_error(failure)));
                            }});
    return result->get_future().get();
  }
  void answer(std::chrono::nanoseconds spin) override { caf::anon_send(actor_, answer_probes{spin}); }
  void deliver(const tensor_tag& tag, tensor value) override {
    caf::anon_send(actor_, probe_arrived{tag, std::move(value)});
  }
  void lost(const std::string& cause) override { caf::anon_send(actor_, probe_lost{cause}); }

 private:
  caf::actor_system_config config_;
  caf::actor_system system_{with_few_workers(config_)};
  caf::actor actor_;
};

}  // namespace

std::unique_ptr<link_probe> link_probe::start(const link_probe_options& options) {
  return std::make_unique<spawned_probe>(options);
}

}  // namespace troupe
