#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "actors/virtual_actors.hpp"
#include "support/recording_transport.hpp"
#include "troupe/link/inbound_gate.hpp"
#include "troupe/link/process_links.hpp"
#include "troupe/messages/gatherer.hpp"

using namespace troupe;
using namespace troupe::actors::link;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

constexpr int world_size = 3;

/// What became of a request.
struct asked_request {
  int process = 0;  ///< the process that made it
  actors::actor::actor_name to;
  std::uint64_t generation = 0;
  int num_handled = 0;
  std::vector<std::string> answers;  ///< "value", or the text of an error
};

struct job;

/// Frames of one process to another, in order.
class lossy_transport : public recording_transport {
 public:
  lossy_transport(job& of, int process, int rank) : recording_transport(rank), job_(of), process_(process) {}
  void send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) override;

 private:
  job& job_;
  int process_;
};

struct process {
  int id, rank;
  std::uint32_t incarnation;
  lossy_transport out;
  inbound_gate gate;
  std::shared_ptr<process_links> links;
  bool alive = true;
  std::uint64_t generation = 0;  ///< the generation that it has entered
  std::uint64_t fenced = 0;
  caf::actor server, client;
  process(job& of, int with_id, int with_rank, std::uint32_t with_incarnation)
      : id(with_id), rank(with_rank), incarnation(with_incarnation), out(of, with_id, with_rank) {}
};

/// Processes that ask each other, in generations that change when the lot says so.
struct job {
  std::mt19937 random;
  virtual_actors actors{1};
  std::vector<std::unique_ptr<process>> processes;
  std::map<std::pair<int, int>, std::deque<std::function<void()>>> channels;
  std::map<std::uint32_t, asked_request> requests;  ///< by get_cached::call
  std::map<std::uint32_t, std::vector<caf::response_promise>> kept;
  std::map<caf::actor_addr, int> num_downs;
  std::uint64_t generation = 1;
  std::vector<cluster::member_loss> losses;
  std::map<int, int> connected_to;  ///< by rank: the process of the newest view

  explicit job(std::uint32_t seed) : random(seed) {
    for (int rank = 0; rank < world_size; ++rank) start(rank, 0);
  }
  ~job() {
    for (auto& each : processes) kill(*each);
    actors.run();
  }
  unsigned draw(unsigned n) { return static_cast<unsigned>(random() % n); }

  process& present(int rank) {
    for (auto& each : processes)
      if (each->alive && each->rank == rank) return *each;
    throw std::logic_error("no process of this rank");
  }

  void start(int rank, std::uint32_t incarnation) {
    auto& made = *processes.emplace_back(
        std::make_unique<process>(*this, static_cast<int>(processes.size()), rank, incarnation));
    made.server =
        actors.system().spawn([this, &made](caf::event_based_actor* self) { return serve(self, made); });
    made.client =
        actors.system().spawn([this, &made](caf::event_based_actor* self) { return ask(self, made); });
  }

  /// Replies, fails, or says nothing.
  caf::behavior serve(caf::event_based_actor* self, process& mine) {
    return {[this, self, &mine](
                const actors::messages::get_cached& wanted) -> caf::result<actors::messages::cached_sent> {
      auto& one = requests.at(wanted.call);
      ++one.num_handled;
      CHECK(one.to == actors::actor::actor_name{actors::actor::actor_role::gatherer,
                                                static_cast<std::uint32_t>(mine.rank), mine.incarnation});
      CHECK(wanted.generation <= mine.generation);  // it may have waited in the mailbox
      if (wanted.call % 7 == 3) return actors::actor::unavailable("refused " + std::to_string(wanted.call));
      if (wanted.call % 7 == 5) {
        auto promise = self->make_response_promise<actors::messages::cached_sent>();
        kept[0].push_back(promise);
        return promise;
      }
      return actors::messages::cached_sent{{wanted.call}};
    }};
  }

  /// Makes a request when it is poked.
  caf::behavior ask(caf::event_based_actor* self, process& mine) {
    self->set_down_handler([this](const caf::down_msg& down) { ++num_downs[down.source]; });
    return {[this, self, &mine](int to_rank) {
      if (!mine.links || mine.fenced > mine.generation) return;
      auto proxy = mine.links->proxy(to_rank, actors::actor::actor_role::gatherer,
                                     static_cast<std::uint32_t>(to_rank));
      if (num_downs.emplace(proxy.address(), 0).second) self->monitor(proxy);
      auto call = static_cast<std::uint32_t>(requests.size());
      auto incarnation = processes.at(static_cast<std::size_t>(connected_to.at(to_rank)))->incarnation;
      requests[call] = {
          mine.id,
          {actors::actor::actor_role::gatherer, static_cast<std::uint32_t>(to_rank), incarnation},
          mine.generation,
          0,
          {}};
      self->request(proxy, caf::infinite, actors::messages::get_cached{mine.generation, mine.rank, call})
          .then(
              [this, call](const actors::messages::cached_sent& reply) {
                CHECK(reply.indices == std::vector<std::uint32_t>{call});
                requests[call].answers.push_back("value");
              },
              [this, call](const caf::error& problem) {
                requests[call].answers.push_back(actors::actor::describe(problem));
              });
    }};
  }

  void kill(process& one) {
    if (!std::exchange(one.alive, false)) return;
    one.gate.close();
    if (one.links) one.links->end({}, "the process is killed");
    for (const auto& each : {one.server, one.client}) caf::anon_send_exit(each, caf::exit_reason::kill);
    one.server = one.client = {};
    for (auto& [along, frames] : channels)
      if (along.first == one.id) frames.resize(draw(static_cast<unsigned>(frames.size() + 1)));
  }

  /// A generation ends, mostly since a process is lost.
  void raise() {
    ++generation;
    losses.clear();
    if (draw(4) == 0) return;
    auto& lost = present(static_cast<int>(draw(world_size)));
    auto rank = lost.rank;
    auto incarnation = lost.incarnation;
    kill(lost);
    losses.push_back({rank, "killed by SIGKILL"});
    start(rank, incarnation + 1);
  }

  void fence(process& one) {
    one.fenced = generation;
    if (one.links) one.links->end(losses, "generation " + std::to_string(generation) + " has begun");
  }

  /// Possible when all are fenced; the processes learn of it one after the other.
  void view(process& one) {
    for (auto& each : processes)
      if (each->alive && each->fenced < generation) return;
    cluster::membership_view formed{generation, {}};
    for (int rank = 0; rank < world_size; ++rank) {
      auto& added = formed.members.emplace_back();
      added.rank = rank;
      added.incarnation = present(rank).incarnation;
      connected_to[rank] = present(rank).id;
    }
    process_links_options options;
    options.rank = one.rank;
    options.out = &one.out;
    one.links = std::make_shared<process_links>(actors.system(), formed, options);
    one.generation = generation;
    one.gate.bind(
        {actors::actor::actor_role::gatherer, static_cast<std::uint32_t>(one.rank), one.incarnation},
        one.server);
    one.gate.open(generation, one.links);
  }

  void happen() {
    auto& any = present(static_cast<int>(draw(world_size)));
    switch (draw(60)) {
      case 0:
        if (std::ranges::all_of(processes,
                                [&](auto& each) { return !each->alive || each->generation == generation; }))
          return raise();
        return;
      case 1:
        return actors.advance(std::chrono::seconds(1 + draw(4)));
      case 2:  // a frame is lost although no process is
        for (auto& [along, frames] : channels)
          if (!frames.empty() && draw(4) == 0) return frames.pop_front();
        return;
      default:
        break;
    }
    if (any.fenced < generation && draw(3) == 0) return fence(any);
    if (any.generation < generation && draw(3) == 0) return view(any);
    if (draw(4) == 0) {
      auto to = static_cast<int>((static_cast<unsigned>(any.rank) + 1 + draw(world_size - 1)) % world_size);
      return caf::anon_send(any.client, to);
    }
    if (draw(2) == 0 && actors.run_any(random)) return;
    std::erase_if(channels, [](const auto& one) { return one.second.empty(); });
    if (channels.empty()) return;
    auto chosen = std::next(channels.begin(),
                            static_cast<std::ptrdiff_t>(draw(static_cast<unsigned>(channels.size()))));
    auto carry = std::move(chosen->second.front());
    chosen->second.pop_front();
    carry();
  }
};

void lossy_transport::send_control(int to_rank, std::uint64_t generation, std::span<const std::byte> body) {
  if (!job_.connected_to.contains(to_rank)) return;
  auto& receiver = *job_.processes.at(static_cast<std::size_t>(job_.connected_to.at(to_rank)));
  std::vector<std::byte> frame(body.begin(), body.end());
  job_.channels[{process_, receiver.id}].push_back([&receiver, generation, frame, from = rank()] {
    if (receiver.alive) receiver.gate.deliver(from, generation, frame);
  });
}

}  // namespace

TEST_CASE(
    "every request between processes is answered once, and handled at most once, whatever is lost when") {
  auto seed = GENERATE(range(0u, 300u));
  job one(seed);
  for (int i = 0; i < 3000; ++i) one.happen();
  // All that is under way ends: by a reply, by the time limit, or with the generation.
  while (one.actors.run_any(one.random)) {
  }
  for (int i = 0; i < 4; ++i) one.actors.advance(10s);
  INFO("seed " << seed << ", generation " << one.generation);
  int num_values = 0;
  for (const auto& [call, request] : one.requests) {
    CHECK(request.num_handled <= 1);
    bool requester_lives = one.processes.at(static_cast<std::size_t>(request.process))->alive;
    INFO("request " << call << " to " << to_string(request.to) << " in generation " << request.generation);
    if (requester_lives) CHECK(request.answers.size() == 1);
    for (const auto& answer : request.answers) {
      if (answer == "value") ++num_values;
      bool names_it = answer.find(to_string(request.to)) != std::string::npos;
      bool is_refusal = answer == "refused " + std::to_string(call);
      CHECK((answer == "value" || is_refusal || names_it));
      if (answer == "value" || is_refusal) CHECK(request.num_handled == 1);
    }
  }
  CHECK(num_values > 0);
  for (const auto& [proxy, count] : one.num_downs) CHECK(count <= 1);
}
