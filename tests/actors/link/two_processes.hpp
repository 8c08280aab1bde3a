#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "actors/virtual_actors.hpp"
#include "support/recording_transport.hpp"
#include "troupe/link/inbound_gate.hpp"
#include "troupe/link/process_links.hpp"

namespace troupe::testing {

/// Ranks 0 and 1, whose frames are carried when the test says so.
struct two_processes {
  struct process {
    recording_transport out;
    std::shared_ptr<actors::link::process_links> links;
    actors::link::inbound_gate gate;
    std::vector<std::string> failures;  ///< what the links reported
    explicit process(int rank) : out(rank) {}
  };
  virtual_actors actors;
  process here{0}, there{1};
  std::uint64_t generation = 0;

  two_processes() { begin(7, 2); }
  ~two_processes() {
    for (auto* each : {&here, &there}) {
      each->links->end({}, "the test is over");
      each->gate.close();
    }
  }

  /// A generation in which rank 1 has this incarnation.
  void begin(std::uint64_t next, std::uint32_t incarnation) {
    generation = next;
    cluster::membership_view view{generation, {}};
    for (int rank : {0, 1}) view.members.emplace_back().rank = rank;
    view.members[1].incarnation = incarnation;
    for (auto* each : {&here, &there}) {
      actors::link::process_links_options options;
      options.rank = each->out.rank();
      options.out = &each->out;
      options.on_failure = [each](int, const std::string& cause) { each->failures.push_back(cause); };
      each->links = std::make_shared<actors::link::process_links>(actors.system(), view, options);
      each->gate.open(generation, each->links);
    }
  }

  /// Carries all frames in both directions, until there are none.
  void carry() {
    actors.run();
    while (!here.out.frames.empty() || !there.out.frames.empty()) {
      carry(here, there);
      carry(there, here);
    }
  }
  void carry(process& from, process& to) {
    for (const auto& frame : std::exchange(from.out.frames, {}))
      to.gate.deliver(from.out.rank(), frame.generation, frame.body);
    actors.run();
  }
};

}  // namespace troupe::testing
