#include "runtime/collective/libraries/nccl_members.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "support/cuda_emulation/runtime/gpus.hpp"
#include "support/fake_nccl/fake_nccl.hpp"

namespace {

/// Four GPUs for all cases, and a NCCL to which nothing has happened for each.
class fresh_nccl : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override { troupe::emulation::set_num_gpus(4); }
  void testCaseStarting(const Catch::TestCaseInfo&) override { troupe::fake_nccl::reset(); }
};
CATCH_REGISTER_LISTENER(fresh_nccl)

}  // namespace

namespace troupe::testing {

std::unique_ptr<communicator> nccl_member(collective::store& place, int size, int member,
                                          const communicator_options& options) {
  std::vector<world_rank> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_nccl_group({"all", ranks, member}, place, make_nccl_connections(gpu_of_member(member)),
                         options);
}

std::vector<std::string> run_nccl_members(
    int size, const std::function<void(communicator& all, collective::store& place)>& body,
    const communicator_options& options) {
  collective::memory_store place;
  std::vector<std::string> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int member = 0; member < size; ++member)
    threads.emplace_back([&, member] {
      std::unique_ptr<communicator> all;
      try {
        all = nccl_member(place, size, member, options);
        body(*all, place);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(member)] = error.what();
        if (all) all->abort(error.what());
      }
    });
  for (auto& each : threads) each.join();
  return failures;
}

collective_error failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const collective_error& error) {
    return error;
  }
  throw std::runtime_error("the call succeeded");
}

void check_nccl_is_unharmed() {
  CHECK(fake_nccl::problems() == std::vector<std::string>{});
  CHECK(fake_nccl::num_live_communicators() == 0);
}

}  // namespace troupe::testing
