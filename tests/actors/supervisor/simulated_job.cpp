#include "simulated_job.hpp"

#include <spdlog/logger.h>

#include <algorithm>
#include <array>
#include <limits>

#include "simulated_process.hpp"
#include "support/drained.hpp"
#include "troupe/actor/actor_of.hpp"

namespace troupe::testing {

using namespace std::chrono_literals;

namespace {

bool adds_source(actors::job::call_kind kind) {
  return kind == actors::job::call_kind::train || kind == actors::job::call_kind::evaluate ||
         kind == actors::job::call_kind::forward_backward;
}

}  // namespace

// ---- the agent

void simulated_job::tell_agent(const simulated_process& from,
                               std::function<cluster::membership_outputs()> change) {
  if (!from.alive) return;
  carry({from.id, 0, 0},
        [this, rank = from.rank, incarnation = from.incarnation, change = std::move(change)] {
          if (agent_.is_member(rank, incarnation)) carry_out(change());
        });
}

void simulated_job::carry_out(const cluster::membership_outputs& outputs) {
  auto to_member = [this](int rank, auto deliver) {
    auto* process = present(rank);
    if (!process) return;
    carry({0, process->id, 0}, [process, deliver] {
      if (process->alive) deliver(*process);
    });
  };
  for (const auto& output : outputs) {
    if (auto* fence = std::get_if<cluster::send_fence>(&output))
      for (auto rank : fence->to)
        to_member(rank, [fence = *fence](simulated_process& process) {
          process.fenced->store(fence.generation);
          caf::anon_send(process.supervisor, actors::messages::fence_raised{fence.generation, fence.losses});
        });
    if (std::holds_alternative<cluster::send_view>(output)) draw_homes();
    if (auto* view = std::get_if<cluster::send_view>(&output))
      for (const auto& member : view->view.members)
        to_member(member.rank, [view = view->view](simulated_process& process) {
          caf::anon_send(process.supervisor, actors::messages::view_formed{view});
        });
    if (auto* recovered = std::get_if<cluster::send_recovered>(&output))
      for (int rank = 0; rank < options_.world_size; ++rank)
        to_member(rank, [report = recovered->report](simulated_process& process) {
          caf::anon_send(process.supervisor, actors::messages::recovery_done{report});
        });
    if (auto* kill = std::get_if<cluster::kill_process>(&output))
      if (auto* process = present(kill->rank); process && process->incarnation == kill->incarnation) {
        history_.push_back("agent kills rank " + std::to_string(kill->rank) + ": " + kill->cause);
        end(*process, true);
      }
    if (std::holds_alternative<cluster::send_done>(output))
      for (int rank = 0; rank < options_.world_size; ++rank)
        to_member(rank, [](simulated_process& process) {
          caf::anon_send(process.supervisor, actors::job::job_done{});
        });
    if (auto* ended = std::get_if<cluster::end_job>(&output)) failure_ = ended->cause;
  }
}

// ---- processes

simulated_job::simulated_job(simulated_job_options options)
    : options_(std::move(options)),
      random_(options_.seed),
      agent_({options_.world_size, 60s, 1s, true}, now_),
      failures_left_(options_.num_failures),
      pause_requests_left_(options_.num_pause_requests) {
  for (int rank = 0; rank < options_.world_size; ++rank) start(rank, 0);
}

simulated_job::~simulated_job() {
  for (auto& process : processes_)
    if (process->alive) end(*process, true);
  actors_.run();
}

simulated_process* simulated_job::present(int rank) {
  auto found = std::ranges::find_if(
      processes_, [&](const auto& process) { return process->alive && process->rank == rank; });
  return found == processes_.end() ? nullptr : found->get();
}

void simulated_job::start(int rank, std::uint32_t incarnation) {
  auto& process = *processes_.emplace_back(
      std::make_unique<simulated_process>(*this, static_cast<int>(processes_.size()) + 1, rank, incarnation));
  process.model->num_stages = options_.num_stages;
  process.model->num_slices = options_.num_slices;
  process.model->before = [&process](const std::string& call) {
    if (!process.alive) return;
    if (process.program_calls_to_failure != 0 && --process.program_calls_to_failure == 0)
      throw std::runtime_error("drawn by lot to fail in " + call);
  };
  process.faults = fault::fault_plan(draw_io_failures(rank), rank, 0);
  actors::supervisor::supervisor_options made;
  made.rank = rank;
  made.world_size = options_.world_size;
  made.incarnation = incarnation;
  made.host = "host";
  made.numeric_class = "class";
  made.out = &process.out;
  made.members = &process.members;
  made.gate = &process.gate;
  made.directory = &process.directory;
  made.faults = &process.faults;
  made.trace = &process.trace;
  made.fenced = process.fenced;
  made.client = process.client;
  made.pause = process.pause;
  made.hosted = process.hosted;
  made.progress_timeout = options_.progress_timeout;
  made.log = std::make_shared<spdlog::logger>("actors");
  made.restarts.io.intensity = made.restarts.compute.intensity = 1000;
  made.threads = actors::supervisor::child_threads::shared;
  process.supervisor =
      actors_.system().spawn<actors::actor::actor_of<actors::supervisor::supervisor_state>>(made);
  cluster::member self;
  self.rank = rank;
  self.incarnation = incarnation;
  self.numeric_class = "class";
  self.address = process.out.begin_generation(0);
  process.members.join(self);
}

/// Each once, at a step drawn by lot.
std::string simulated_job::draw_io_failures(int rank) {
  std::string text;
  for (int i = 0; i < options_.num_io_failures; ++i) {
    auto drawn = random_() % 5;
    auto point = std::array{"load", "keep_copy", "part_half_written", "before_manifest", "read_part"}[drawn];
    text += (i == 0 ? "" : ";") + std::string(point) + ":fail@rank=" + std::to_string(rank);
    if (drawn < 2) text += ",step=" + std::to_string(random_() % 20);
  }
  return text;
}

/// A process that is killed may have sent less than it meant to; one that ends has sent all.
void simulated_job::end(simulated_process& process, bool killed) {
  process.alive = false;
  process.gate.close();
  process.directory.close();
  process.fenced->store(std::numeric_limits<std::uint64_t>::max());
  caf::anon_send_exit(process.supervisor, caf::exit_reason::kill);
  process.supervisor = {};
  if (killed)
    for (auto& [along, things] : channels_)
      if (along.from == process.id) things.resize(random_() % (things.size() + 1));
  carry({process.id, 0, 0}, [this, &process, killed] {
    if (!killed) return carry_out(agent_.process_exited(process.rank, now_));
    carry_out(agent_.process_lost(process.rank, "killed", now_, now_, now_));
    if (!agent_.is_done()) start(process.rank, process.incarnation + 1);
  });
}

// ---- failures

void simulated_job::maybe_fail() {
  // More often when some are about to leave, which does not take long.
  auto ends = [this](const auto& process) { return process->next_call + 1 >= options_.calls.size(); };
  auto every = std::ranges::any_of(processes_, ends) ? 30 : options_.failure_every;
  if (failures_left_ == 0 || random_() % every != 0) return;
  auto* process = present(static_cast<int>(random_() % static_cast<unsigned>(options_.world_size)));
  if (!process) return;
  --failures_left_;
  // Only with snapshots on disk the job survives the loss of all processes.
  switch (random_() % (options_.folder.empty() ? 4 : 5)) {
    case 4:
      for (int rank = 0; rank < options_.world_size; ++rank)
        if (auto* one = present(rank)) {
          history_.push_back("rank " + std::to_string(rank) + " is killed with all others");
          end(*one, true);
        }
      return;
    case 0:
      history_.push_back("an actor of rank " + std::to_string(process->rank) + " is to fail");
      process->program_calls_to_failure = 1 + static_cast<int>(random_() % 20);
      return;
    case 1:
      history_.push_back("rank " + std::to_string(process->rank) + " asks for a generation");
      return process->members.request_generation(agent_.generation(), "drawn by lot");
    default:
      history_.push_back("rank " + std::to_string(process->rank) + " is killed");
      return end(*process, true);
  }
}

// ---- users

void simulated_job::enter(simulated_process& process) {
  auto request = options_.calls[process.next_call];
  request.index = static_cast<std::uint32_t>(process.next_call);
  if (process.next_call == 0) {
    auto job = jobs_.emplace_back(std::make_shared<actors::job::job_definition>());
    job->make_program = fake_programs(process.model);
    auto most_devices = options_.world_size * options_.devices_per_rank;
    auto num_lanes = options_.num_replicas * options_.num_slices;
    auto of_each_lane = (most_devices + num_lanes - 1) / num_lanes;
    job->place(make_plan({.kind = options_.schedule,
                          .num_stages = options_.num_stages,
                          .num_microbatches = 2,
                          .num_devices = std::min(options_.num_stages, of_each_lane),
                          .reductions = options_.reductions,
                          .num_replicas = options_.num_replicas,
                          .num_slices = options_.num_slices,
                          .has_equal_replicas = true}),
               options_.world_size, options_.contents);
    job->snapshots.folder = options_.folder;
    job->on_lost_state = actors::job::lost_state_policy::restart;  // neighbours may be lost at once
    job->snapshots.cadence.memory_every_steps = options_.memory_every_steps;
    job->snapshots.cadence.disk_every_steps = options_.folder.empty() ? 0 : 3;
    job->snapshots.cadence.disk_interval = 0s;
    caf::anon_send(process.supervisor, actors::messages::define_job{job});
  }
  // Of steps in two calls the first one adds it.
  bool is_next = std::ranges::none_of(options_.calls.begin(), options_.calls.begin() + request.index,
                                      [&](const actors::job::call_request& before) {
                                        return adds_source(before.kind) && before.source >= request.source;
                                      });
  if (adds_source(request.kind) && is_next)
    caf::anon_send(process.supervisor, actors::messages::add_source{std::make_shared<fake_source>(
                                           static_cast<int>(request.source), 4 * options_.num_replicas)});
  caf::anon_send(process.supervisor, actors::messages::enter_call{request});
  process.in_call = true;
}

void simulated_job::poll_user(simulated_process& process) {
  for (const auto& event : drained(*process.client)) {
    if (auto* failed = std::get_if<actors::job::job_failure>(&event)) failure_ = failed->cause;
    // A process that learns of the job's end before its last call was lost before: its calls have no effect.
    if (std::holds_alternative<actors::job::job_done>(event)) {
      if (process.next_call + 1 < options_.calls.size()) return end(process, false);
      return leave(process);
    }
    if (auto* step = std::get_if<actors::job::step_progress>(&event)) {
      auto [told, is_first] = steps_.emplace(step->step, step->metrics);
      if (!is_first && told->second != step->metrics)
        problems_.push_back("step " + std::to_string(step->step) + " told twice, differently");
    }
    if (auto* result = std::get_if<actors::job::call_result>(&event);
        result && process.in_call && result->index == process.next_call) {
      check(process, *result);
      ++process.next_call;
      process.in_call = false;
    }
  }
  if (process.in_call) return;
  if (process.next_call < options_.calls.size()) return enter(process);
  leave(process);
}

void simulated_job::leave(simulated_process& process) {
  process.members.leave();
  end(process, false);
}

bool simulated_job::ended_well() const {
  return failure_.empty() && agent_.is_done() &&
         std::ranges::none_of(processes_, [](const auto& process) { return process->alive; });
}

void simulated_job::check(const simulated_process& process, const actors::job::call_result& result) {
  auto [told, is_first] = results_.emplace(result.index, result);
  if (is_first) return;
  const auto& before = told->second;
  if (before.steps_done != result.steps_done || before.metrics != result.metrics ||
      before.weights_sha256 != result.weights_sha256)
    problems_.push_back("rank " + std::to_string(process.rank) + " was told another result of call " +
                        std::to_string(result.index));
}

// ---- what happens

/// One thing; false if there is nothing.
bool simulated_job::happen() {
  maybe_fail();
  maybe_request_pause();
  auto carried = [this] {
    std::erase_if(channels_, [](const auto& one) { return one.second.empty(); });
    if (channels_.empty()) return false;
    auto chosen = std::next(channels_.begin(), static_cast<std::ptrdiff_t>(random_() % channels_.size()));
    auto what = std::move(chosen->second.front());
    chosen->second.pop_front();
    what();
    return true;
  };
  if (random_() % 16 == 0)
    for (int rank = 0; rank < options_.world_size; ++rank)
      if (auto* process = present(rank); process && random_() % 2 == 0) poll_user(*process);
  bool actors_first = random_() % 4 != 0;
  return actors_first ? actors_.run_any(random_) || carried() : carried() || actors_.run_any(random_);
}

void simulated_job::run() {
  constexpr std::uint64_t most_things = 500'000;  // a job takes some thousands
  constexpr int max_idle_steps = 400;  // virtual time that may pass with nothing happening, in steps of 50 ms
  std::uint64_t num_happened = 0;
  for (int idle = 0; idle < max_idle_steps && !ended_well() && failure_.empty();) {
    if (num_happened > most_things) return problems_.push_back("it goes on for ever");
    if (happen()) {
      ++num_happened;
      idle = 0;
      continue;
    }
    for (int rank = 0; rank < options_.world_size; ++rank)
      if (auto* process = present(rank)) poll_user(*process);
    end_long_pause();
    actors_.coordinator().advance_time(50ms);
    now_ += 50ms;
    ++idle;
  }
}

}  // namespace troupe::testing
