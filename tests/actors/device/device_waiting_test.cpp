// A device on a thread of its own, which waits in the transport.
#include <algorithm>
#include <caf/scoped_actor.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "one_device.hpp"
#include "troupe/actor/receiving_actor.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/execution/replicas/group_exchange.hpp"
#include "troupe/execution/replicas/replica_groups.hpp"
#include "troupe/messages/stage.hpp"

using namespace troupe;
using namespace troupe::actors::devices;
using namespace troupe::testing;

namespace {

/// Hands tensors given by add_arrival() to the waiter, on the waiting thread.
class blocking_transport final : public recording_transport {
 public:
  blocking_transport() : recording_transport(1) {}

  void add_arrival(const troupe::transport::tensor_tag& tag, tensor value = tensor::full({2, 1}, 0.5f)) {
    std::lock_guard lock(mutex_);
    arrivals_.emplace_back(tag, std::move(value));
    changed_.notify_all();
  }
  bool receive_for(troupe::transport::tensor_waiter& waiter, std::chrono::nanoseconds) override {
    std::unique_lock lock(mutex_);
    while (waiter.waits()) {
      holder = &waiter;
      while (!arrivals_.empty()) {
        auto [tag, value] = std::move(arrivals_.front());
        arrivals_.pop_front();
        lock.unlock();  // as the transports do
        refused += waiter.take(0, tag, value) ? 0 : 1;
        lock.lock();
      }
      if (waiter.waits()) changed_.wait(lock);
    }
    return true;
  }
  void stop_receiving(const troupe::transport::tensor_waiter& waiter) override {
    std::lock_guard lock(mutex_);
    if (holder == &waiter) holder = nullptr;
    changed_.notify_all();
  }
  void wake_receiver() override {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  /// Blocks until no waiter is in receive_for.
  void wait_until_released() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return holder == nullptr; });
  }
  void send_tensor(int to_rank, const troupe::transport::tensor_tag& tag, tensor value) override {
    std::lock_guard lock(mutex_);
    recording_transport::send_tensor(to_rank, tag, std::move(value));
    changed_.notify_all();
  }
  void wait_until_sent(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tensors.size() >= count; });
  }

  const troupe::transport::tensor_waiter* holder = nullptr;
  int refused = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<troupe::transport::tensor_tag, tensor>> arrivals_;
};

/// The device in the middle of three, on its own thread; of the first replica, if there are several.
struct threaded_device {
  fault::fault_plan no_faults;
  trace::event_ring ring{"device", 1024};
  std::shared_ptr<std::atomic<std::uint64_t>> fenced = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<fake_model> model = std::make_shared<fake_model>();
  std::shared_ptr<actors::messages::device_job> job = std::make_shared<actors::messages::device_job>();
  blocking_transport out;
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  std::shared_ptr<actors::messages::device_status> status =
      std::make_shared<actors::messages::device_status>();
  std::shared_ptr<execution::arrivals> from_replicas =
      std::make_shared<execution::arrivals>([this] { out.wake_receiver(); });
  caf::actor device;

  explicit threaded_device(const plan& training = make_plan({schedule_kind::gpipe, 3, 2, 3}),
                           std::shared_ptr<execution::replica_groups> groups = nullptr,
                           std::chrono::nanoseconds spin = std::chrono::microseconds(50)) {
    model->num_stages = 3;
    job->training = training;
    job->groups = std::move(groups);
    place_on_ranks(*job);
    device = system.spawn<actors::actor::receiving_actor<device_state>, caf::detached>(
        out, device_options{.device = 1,
                            .rank = 1,
                            .out = &out,
                            .faults = &no_faults,
                            .ring = &ring,
                            .fenced = fenced,
                            .spin = spin,
                            .status = status,
                            .from_replicas = from_replicas});
    actors::messages::begin_generation command{
        1, job, {{1, std::make_shared<fake_program>(model, layout::cell{.stage = 1}), self}}, self, {}, 0};
    model->calls.clear();  // that it was made
    self->send(device, command);
  }
  ~threaded_device() { self->send_exit(device, caf::exit_reason::user_shutdown); }
  static troupe::transport::tensor_tag tag(std::uint32_t microbatch, troupe::transport::tensor_role role) {
    return {1, 0, 3, 1, microbatch, role};
  }
};

/// Two replicas, which run stage 1 together.
plan jointly_running_plan() {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = 3,
                    .num_microbatches = 2,
                    .num_devices = 3,
                    .num_replicas = 2,
                    .joint = schedule::joint_passes({1}, layout::mesh_axis::dp)});
}

/// What the other replica sends in its forward of microbatch `microbatch`.
void add_up_with(std::uint32_t microbatch,
                 const std::function<void(const troupe::transport::tensor_tag&, tensor)>& put) {
  std::uint32_t messages = 2 * microbatch;  // a sum and an end in each pass before
  execution::joint_pass other(
      {1, action_kind::forward, static_cast<int>(microbatch)}, 1, 2, {.generation = 1, .call = 3, .stage = 1},
      messages, put,
      [](const troupe::transport::tensor_tag&) -> tensor { throw program::action_interrupted(); });
  auto values = tensor::full({1}, 2);
  CHECK_THROWS_AS(other.all_reduce(values), program::action_interrupted);
}

}  // namespace

TEST_CASE("a device waits for its tensors in the transport, and leaves the transport when it is idle") {
  threaded_device here;
  here.self->send(here.device, actors::messages::step_credit{
                                   1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 1, {}, 0});
  for (auto role : {troupe::transport::tensor_role::activation, troupe::transport::tensor_role::gradient})
    for (auto microbatch : {1U, 0U}) here.out.add_arrival(here.tag(microbatch, role));
  here.self->receive([](const actors::messages::step_done& done) { CHECK(done.step == 0); });
  here.out.wait_until_released();
  CHECK(here.model->calls == calls{"F1.0", "F1.1", "I1.0", "W1.0", "I1.1", "W1.1", "A1@0"});
  CHECK(here.out.tensors.size() == 4);
}

TEST_CASE(
    "a device that waits in the transport leaves other devices' tensors there, and still handles messages") {
  threaded_device here;
  here.self->send(here.device, actors::messages::step_credit{
                                   1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 1, {}, 0});
  auto foreign = here.tag(0, troupe::transport::tensor_role::activation);
  foreign.stage = 2;
  here.out.add_arrival(foreign);
  here.out.add_arrival(here.tag(0, troupe::transport::tensor_role::snapshot_part));
  here.out.add_arrival(here.tag(0, troupe::transport::tensor_role::activation));
  here.out.wait_until_sent(1);  // before an action the device looks for mail
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::quiesce{2})
      .receive([](const actors::messages::stopped& answer) { CHECK(answer.interrupted_step == 1); },
               [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  here.out.wait_until_released();
  CHECK(here.out.refused == 2);
  CHECK(here.model->calls == calls{"F1.0"});
}

TEST_CASE("within an action a device waits for the other replica, in the transport or for who brings it") {
  threaded_device here(jointly_running_plan());
  here.self->send(here.device, actors::messages::step_credit{
                                   1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 1, {}, 0});
  for (auto microbatch : {0U, 1U})
    here.out.add_arrival(here.tag(microbatch, troupe::transport::tensor_role::activation));
  here.out.wait_until_sent(1);  // its own values, to the other replica
  add_up_with(0, [&](const troupe::transport::tensor_tag& tag, tensor value) {
    here.out.add_arrival(tag, std::move(value));
  });
  here.out.wait_until_sent(4);  // the end of 1F0, its output, and the values of 1F1
  add_up_with(1, [&](const troupe::transport::tensor_tag& tag, tensor value) {
    here.from_replicas->put(tag, std::move(value));
  });
  here.out.wait_until_sent(6);
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::quiesce{2})
      .receive([](const actors::messages::stopped& answer) { CHECK(answer.interrupted_step == 1); },
               [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  CHECK(here.model->calls == calls{"F1.0", "J1.0", "F1.1", "J1.1"});
  CHECK(here.out.refused == 0);
}

TEST_CASE("a device that waits within an action gives it up when its generation is fenced") {
  threaded_device here(jointly_running_plan());
  here.self->send(here.device, actors::messages::step_credit{
                                   1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 1, {}, 0});
  here.out.add_arrival(here.tag(0, troupe::transport::tensor_role::activation));
  here.out.wait_until_sent(1);
  here.fenced->store(2);
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::quiesce{2})
      .receive([](const actors::messages::stopped& answer) { CHECK(answer.interrupted_step == 1); },
               [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  here.out.wait_until_released();
  CHECK(here.model->calls == calls{"F1.0"});
}

TEST_CASE("what replicas have sent for earlier steps, such as the ends of their passes, is forgotten") {
  threaded_device here(jointly_running_plan());
  auto of_step = [&here](std::uint64_t step) {
    add_up_with(0, [&](troupe::transport::tensor_tag tag, tensor value) {
      tag.step = step;
      here.from_replicas->put(tag, std::move(value));
    });
  };
  of_step(4);
  of_step(5);
  here.self->send(here.device, actors::messages::step_credit{
                                   1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 5, 6, {}, 0});
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::inspect_device{})
      .receive([](const actors::messages::device_report& report) { CHECK(report.num_held == 1); },
               [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
}

namespace {

/// Two replicas of three stages, whose updates may be deferred.
struct deferring_device : threaded_device {
  deferring_device()
      : threaded_device(make_plan({.kind = schedule_kind::gpipe,
                                   .num_stages = 3,
                                   .num_microbatches = 2,
                                   .num_devices = 3,
                                   .num_replicas = 2})) {
    model->defers_updates = true;
  }

  /// Two steps are granted, and what the first one needs of other stages arrives, and the next one's
  /// activation.
  void run_first_step(const std::vector<actors::messages::due_copy>& copies = {}) {
    self->send(device, actors::messages::step_credit{
                           1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 2, copies, 0});
    for (auto role : {troupe::transport::tensor_role::activation, troupe::transport::tensor_role::gradient})
      for (auto microbatch : {0U, 1U}) out.add_arrival(tag(microbatch, role));
    auto next = tag(0, troupe::transport::tensor_role::activation);
    next.step = 1;
    out.add_arrival(next);
    out.wait_until_sent(5);  // two outputs, two gradients, and what the other replica adds up
  }
  void wait_in_next_forward() const {
    while (position().activity != schedule::device_activity::waiting_for_tensor || position().action != 4)
      std::this_thread::yield();
  }
  /// As published.
  actors::messages::execution_position position() const {
    for (;;)
      if (auto seen = status->read()) return seen->position;
  }
  /// The other replica's sum.
  static troupe::transport::tensor_tag sum() {
    auto made = tag(0, troupe::transport::tensor_role::summed_gradients);
    made.port = 1;
    return made;
  }
  calls first_step{"F1.0", "F1.1", "I1.0", "W1.0", "I1.1", "W1.1", "G1.0"};
};

}  // namespace

TEST_CASE("a device begins the next step before its update is complete, and tells of the step when it is") {
  for (bool by_transport : {true, false}) {
    deferring_device here;
    here.run_first_step();
    here.wait_in_next_forward();
    CHECK(here.position().step == 0);  // where it waits for the G
    if (by_transport)
      here.out.add_arrival(here.sum(), tensor::full({1}, 1));
    else
      here.from_replicas->put(here.sum(), tensor::full({1}, 1));
    here.self->receive([](const actors::messages::step_done& done) { CHECK(done.step == 0); });
    here.out.wait_until_sent(6);  // the next step's output
    auto expected = here.first_step;
    expected.insert(expected.end(), {"F1.0", "A1@0"});
    CHECK(here.model->calls == expected);
  }
}

TEST_CASE("a device that needs the complete state between two steps does not defer its update") {
  deferring_device here;
  here.run_first_step({{1, 0}});
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::inspect_device{})
      .receive([](const actors::messages::device_report& report) { CHECK(report.position.step == 0); },
               [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  CHECK(here.model->calls == here.first_step);
  here.from_replicas->put(here.sum(), tensor::full({1}, 1));
  here.self->send(here.device, actors::messages::replica_tensors_arrived{});
  here.self->receive([](const actors::messages::state_copied& copied) { CHECK(copied.step == 1); });
  here.self->receive([](const actors::messages::step_done& done) { CHECK(done.step == 0); });
  here.out.wait_until_sent(6);
  auto expected = here.first_step;
  expected.insert(expected.end(), {"A1@0", "F1.0"});
  CHECK(here.model->calls == expected);
}

TEST_CASE("a device whose generation is fenced does not wait for a deferred update") {
  deferring_device here;
  here.run_first_step();
  here.wait_in_next_forward();
  here.fenced->store(2);
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::quiesce{2})
      .receive([](const actors::messages::stopped& answer) { CHECK(answer.interrupted_step == 2); },
               [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  here.out.wait_until_released();
  CHECK(std::ranges::count(here.model->calls, "A1@0") == 0);
}

TEST_CASE("a deferred update that is not finite ends the step before") {
  deferring_device here;
  here.model->non_finite = [](int, std::uint64_t) { return "the gradient of 1.weight"; };
  here.run_first_step();
  here.out.add_arrival(here.sum(), tensor::full({1}, 1));
  here.self->receive([](const actors::messages::step_done& done) {
    CHECK(done.step == 0);
    CHECK(done.non_finite == "stage 1: the gradient of 1.weight");
  });
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::inspect_device{})
      .receive(
          [](const actors::messages::device_report& report) {
            CHECK(report.position.activity == schedule::device_activity::idle);
          },
          [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  CHECK(std::ranges::count(here.model->calls, "A1@0") == 0);
}

namespace {

plan two_replicas() {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = 3,
                    .num_microbatches = 2,
                    .num_devices = 3,
                    .num_replicas = 2});
}

/// The other replica of stage 1, in another process: the groups of this one, and its own member.
struct other_replica {
  std::vector<std::shared_ptr<communicator>> members;
  std::shared_ptr<execution::replica_groups> groups;
  execution::inbox arrived;
  std::string failure;

  other_replica() {
    groups = std::make_shared<execution::replica_groups>(
        1, 0, execution::replica_groups::replica_ranks{{{1}, {1, 4}}},
        [this](const execution::wanted_group& wanted) {
          for (auto& each :
               collective::make_local_group({1, 4}, {.on_call_end = wanted.on_call_end}, "replicas"))
            members.push_back(std::move(each));
          return members.front();
        },
        [](const std::exception&) {});
    while (!groups->wait_for({1}, std::chrono::milliseconds(10))) continue;
  }
  /// Takes part in the first exchange.
  void add_up() {
    execution::replica_messages nobody(1, 2, {}, arrived, [](const auto&, const tensor&) {});
    execution::group_exchange own(
        std::move(nobody), 1, {.member_of_replica = {0, 1}, .calls = members.at(1)},
        [](int, std::int64_t count, dtype type) { return tensor::empty({count}, type); },
        [this](const std::exception& cause) { failure = cause.what(); });
    own.give(0, tensor::full({1}, 1));
    while (!own.is_done() && failure.empty()) own.go_on([](int, const std::vector<tensor>&) {});
  }
};

}  // namespace

TEST_CASE("a device goes on when a call of its group ends, whether it waits in its mailbox or polls") {
  for (auto spin : {std::chrono::microseconds(0), std::chrono::microseconds(50)}) {
    for (bool defers : {false, true}) {
      INFO("spin " << spin.count() << ", defers " << defers);
      other_replica other;
      threaded_device here(two_replicas(), other.groups, spin);
      here.model->defers_updates = defers;
      here.self->send(here.device, actors::messages::step_credit{
                                       1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 2, {}, 0});
      for (auto role : {troupe::transport::tensor_role::activation, troupe::transport::tensor_role::gradient})
        for (auto microbatch : {0U, 1U})
          here.self->send(here.device, actors::messages::tensor_arrived{here.tag(microbatch, role),
                                                                        tensor::full({2, 1}, 0.5F)});
      here.out.wait_until_sent(4);  // nothing to the other replica
      other.add_up();
      CHECK(other.failure.empty());
      here.self->receive([](const actors::messages::step_done& done) { CHECK(done.step == 0); });
      CHECK(std::ranges::count(here.model->calls, "A1@0") == 1);
      CHECK(std::ranges::none_of(here.out.tensors, [](const auto& each) {
        return troupe::transport::is_between_replicas(each.tag.role);
      }));
    }
  }
}

TEST_CASE("a device whose generation is fenced leaves its group's call, and ends the group") {
  other_replica other;
  threaded_device here(two_replicas(), other.groups);
  here.self->send(here.device, actors::messages::step_credit{
                                   1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 2, {}, 0});
  for (auto role : {troupe::transport::tensor_role::activation, troupe::transport::tensor_role::gradient})
    for (auto microbatch : {0U, 1U}) here.out.add_arrival(here.tag(microbatch, role));
  here.out.wait_until_sent(4);
  here.fenced->store(2);
  here.self->request(here.device, std::chrono::seconds(40), actors::messages::quiesce{2})
      .receive([](const actors::messages::stopped& answer) { CHECK(answer.interrupted_step == 1); },
               [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  CHECK_THROWS_MATCHES(
      std::rethrow_exception(other.members[0]->failure()), collective_error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("ends with its generation")));
}
