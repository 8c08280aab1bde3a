#pragma once
#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <memory>
#include <optional>
#include <set>

#include "troupe/gatherer/kept_tensors.hpp"
#include "troupe/gatherer/messages.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe {

struct gatherer_options {
  int rank = 0;
  int world_size = 1;
  transport* out = nullptr;
  std::shared_ptr<client_mailbox> client;           ///< what is complete goes there
  std::size_t kept_bytes = std::size_t{256} << 20;  ///< of older calls, see kept_tensors
};

/// Collects the tensors that calls give to this process's program (weights, predictions), and keeps a part of
/// them for other processes that are started again and make these calls again. One for all jobs of a node.
///
/// States: idle -> collecting (gather_tensors) -> idle (all are here, or nobody keeps them). A new generation
/// begins to collect anew.
///
///   message         -> reply                                        errors
///   gather_tensors  -> want_kept to all others, if it is over
///   tensor_gathered -> gathered_tensors to the user's thread        of another call or generation: dropped
///   want_kept       -> tensors and kept_given to who asks
///   kept_given      -> gathered_gone to the user's thread, if all have answered and tensors are missing
///
/// Monitors nobody. Scheduled: it moves handles only.
class gatherer_state {
 public:
  static constexpr const char* actor_name = "gatherer";
  gatherer_state(caf::event_based_actor* self, gatherer_options options);
  caf::behavior make_behavior();

 private:
  void on_gather(const gather_tensors& order);
  void on_tensor(const tensor_gathered& arrived);
  void on_want(const want_kept& wanted);
  void on_given(const kept_given& given);
  void ask_others();
  void finish();
  void end_if_gone();

  struct collection {
    gather_tensors order;
    kept_tensors::by_place arrived;
    std::set<int> answered;             ///< ranks that were asked and have answered
    std::set<std::uint32_t> announced;  ///< places that these give
    bool is_over = false;
  };

  // constant
  caf::event_based_actor* self_;
  gatherer_options options_;
  // state
  kept_tensors kept_;
  std::optional<collection> current_;
};

}  // namespace troupe
