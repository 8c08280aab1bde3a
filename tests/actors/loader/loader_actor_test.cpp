#include "troupe/loader/loader_actor.hpp"

#include <catch2/catch_test_macros.hpp>

#include "actors/virtual_actors.hpp"
#include "support/bits.hpp"
#include "support/processes/fake_program.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/device.hpp"

using namespace troupe;
using namespace troupe::actors::loader;
using namespace troupe::testing;

namespace {

/// Counts what it makes, and can fail.
class counting_source : public fake_source {
 public:
  using fake_source::fake_source;
  batch at(std::uint64_t step) override {
    if (step == 13) throw std::runtime_error("file of step 13 is damaged");
    ++num_made;
    return fake_source::at(step);
  }
  int num_made = 0;
};

struct one_loader {
  virtual_actors actors;
  std::shared_ptr<counting_source> source = std::make_shared<counting_source>(1);
  caf::actor loader =
      actors.spawn<actors::actor::actor_of<loader_state>>(std::vector<std::shared_ptr<batch_source>>{source});
  probe device{actors};
  probe other{actors};
  void want(const probe& from, const actors::messages::want_batch& wanted) {
    caf::send_as(from.handle(), loader, wanted);
    actors.run();
  }
};

}  // namespace

TEST_CASE("the sender gets the samples of the step that it requested") {
  one_loader here;
  here.want(here.device, {4, 0, 7});
  auto ready = here.device.last<actors::messages::batch_ready>();
  CHECK(ready.call == 4);
  CHECK(ready.step == 7);
  CHECK(same_bits(ready.samples.inputs, fake_source(1).at(7).inputs));
  CHECK(same_bits(ready.samples.targets, fake_source(1).at(7).targets));
  CHECK(here.other.size() == 0);
}

TEST_CASE("a batch that several devices request in a call is made once") {
  one_loader here;
  here.want(here.device, {4, 0, 7});
  here.want(here.other, {4, 0, 7});
  CHECK(here.source->num_made == 1);
  CHECK(same_bits(here.other.last<actors::messages::batch_ready>().samples.inputs,
                  fake_source(1).at(7).inputs));
  here.want(here.other, {5, 0, 7});
  CHECK(here.source->num_made == 2);
  CHECK(here.other.last<actors::messages::batch_ready>().call == 5);
}

TEST_CASE("only the newest batches are kept") {
  one_loader here;
  for (std::uint64_t step = 20; step < 25; ++step) here.want(here.device, {0, 0, step});
  CHECK(here.source->num_made == 5);
  here.want(here.device, {0, 0, 24});
  CHECK(here.source->num_made == 5);
  here.want(here.device, {0, 0, 20});
  CHECK(here.source->num_made == 6);
  CHECK(same_bits(here.device.last<actors::messages::batch_ready>().samples.inputs,
                  fake_source(1).at(20).inputs));
}

TEST_CASE("of replicas that run other batches at a time as many each are kept, until training goes on") {
  one_loader here;
  for (std::uint64_t batch = 0; batch < 8; ++batch) here.want(here.device, {0, 0, batch, 2});
  for (std::uint64_t batch = 0; batch < 8; ++batch) here.want(here.device, {0, 0, batch, 2});
  CHECK(here.source->num_made == 8);
  here.want(here.device, {1, 0, 8});
  here.want(here.device, {0, 0, 4, 2});
  CHECK(here.source->num_made == 10);
}

TEST_CASE("sources are numbered from 0 in the order of their arrival, and their batches are kept apart") {
  one_loader here;
  here.actors.send(here.loader, actors::messages::add_source{std::make_shared<fake_source>(2)});
  here.want(here.device, {0, 0, 7});
  here.want(here.device, {0, 1, 7});
  CHECK(same_bits(here.device.last<actors::messages::batch_ready>().samples.inputs,
                  fake_source(2).at(7).inputs));
}

TEST_CASE("a source that throws ends the loader with the exception's text") {
  one_loader here;
  obituary of(here.actors, here.loader);
  here.want(here.device, {0, 0, 13});
  CHECK(of.reason() == "file of step 13 is damaged");
  CHECK(here.device.size() == 0);
}

TEST_CASE("a request for an unknown source ends the loader") {
  one_loader here;
  obituary of(here.actors, here.loader);
  here.want(here.device, {0, 1, 1});
  CHECK(of.reason());
}
