#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <memory>
#include <optional>
#include <set>

#include "troupe/gatherer/gathered_cache.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/messages/gatherer.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::gatherer {

struct gatherer_options {
  int rank = 0;
  int world_size = 1;
  transport::transport* out = nullptr;
  std::shared_ptr<job::client_mailbox> client;  ///< receives gathered_tensors and gathered_unavailable
  std::shared_ptr<spdlog::logger> log;
  std::size_t cache_limit_bytes = std::size_t{256} << 20;  ///< for calls before the newest
};

/// Collects the tensors that a call (gather, predict) delivers to this process's program, and caches some of
/// them for other processes. One gatherer serves all jobs of a process.
///
/// A process that is started again repeats all calls from the first one. The tensors of earlier calls cannot
/// be computed again, because the weights have changed since; the gatherer requests them from the caches of
/// the other processes (gathered_cache).
///
/// States: idle -> collecting (gather_tensors) -> idle (all tensors arrived, or the caches lack some). With a
/// new generation collecting starts over.
///
///   message         -> reply                                        errors
///   gather_tensors  -> get_cached to all other gatherers, if
///                      from_caches; gathered_unavailable to the
///                      user's thread, when all have replied and
///                      some tensors are missing
///   tensor_gathered -> gathered_tensors to the user's thread, when  other call or generation: dropped
///                      all have arrived
///   get_cached      -> the cached tensors, cached_sent
///
/// Monitors no actor. Scheduled: it moves handles only, no elements.
class gatherer_state {
 public:
  static constexpr const char* actor_name = "gatherer";
  gatherer_state(caf::event_based_actor* self, gatherer_options options);
  caf::behavior make_behavior();

 private:
  void on_gather(const messages::gather_tensors& command);
  void on_tensor(const messages::tensor_gathered& arrived);
  messages::cached_sent on_get_cached(const messages::get_cached& wanted);
  void on_cached_sent(const messages::cached_sent& reply);
  void on_no_reply(const caf::error& problem);
  void request_cached();
  void finish();
  void finish_if_unavailable();

  struct collection {
    messages::gather_tensors command;
    gathered_cache::by_index arrived;
    std::size_t num_replies = 0;        ///< gatherers that have answered get_cached
    std::set<std::uint32_t> announced;  ///< indices of the tensors that these sent
    bool is_done = false;
  };

  // constant
  caf::event_based_actor* self_;
  gatherer_options options_;
  // state
  gathered_cache cache_;
  std::optional<collection> current_;
};

}  // namespace troupe::actors::gatherer
