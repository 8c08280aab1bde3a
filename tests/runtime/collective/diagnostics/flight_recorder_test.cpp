#include "troupe/collective/diagnostics/flight_recorder.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/collective/calls/operation.hpp"

using namespace troupe;
using namespace troupe::collective;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

struct recorded {
  call what;
  recorded(collective_operation of, std::uint64_t sequence) {
    what.what = std::move(of);
    what.sequence = sequence;
    what.begun = call::clock::now();
    what.ended = what.begun + std::chrono::milliseconds(2);
    what.has_waited = true;
  }
};

}  // namespace

TEST_CASE("a recorder lists the last calls and their outcomes") {
  flight_recorder recorder({0, 1, 2, 7});
  CHECK(recorder.text().empty());
  recorded first(all_reduce_of(tensor::zeros({4}), tensor::zeros({4}), reduce_op::sum), 1), second({}, 2),
      message(send_of(tensor::zeros({2}), 3), 1);
  recorder.on_wait(first.what);
  recorder.on_end(first.what);
  recorder.on_wait(second.what);
  recorder.on_wait(message.what);
  second.what.error = std::make_exception_ptr(std::runtime_error("lost"));
  recorder.on_end(second.what);
  auto text = recorder.text();
  CHECK_THAT(text, StartsWith("#1 all_reduce(sum, f32[4]) done in "));
  CHECK_THAT(text, ContainsSubstring("#2 barrier failed after "));
  CHECK_THAT(text, ContainsSubstring("#1 send(f32[2]) to rank 7 waiting for "));
}

TEST_CASE("a recorder lists calls that ended at once") {
  flight_recorder recorder({0});
  recorded quick({}, 1);
  quick.what.has_waited = false;
  quick.what.ended = quick.what.begun;
  recorder.on_end(quick.what);
  CHECK(recorder.text() == "#1 barrier done at once");
}

TEST_CASE("a recorder forgets the oldest calls") {
  flight_recorder recorder({0}, 3);
  for (std::uint64_t i = 1; i <= 5; ++i) recorder.on_wait(recorded({}, i).what);
  auto text = recorder.text();
  CHECK_THAT(text, StartsWith("#3 barrier"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  recorder.on_end(recorded({}, 1).what);  // forgotten already
  CHECK_THAT(recorder.text(), !ContainsSubstring("done"));
}

TEST_CASE("a recorder knows which collective call comes last, whatever messages there are") {
  flight_recorder recorder({0, 1});
  CHECK(recorder.position().sequence == 0);
  recorded first(all_reduce_of(tensor::zeros({4}), tensor::zeros({4}), reduce_op::sum), 1), second({}, 2),
      message(send_of(tensor::zeros({2}), 1), 9);
  recorder.on_wait(first.what);
  recorder.on_end(first.what);
  recorder.on_wait(second.what);
  recorder.on_wait(message.what);
  auto at = recorder.position();
  CHECK(at.sequence == 2);
  CHECK(at.call == "barrier");
  CHECK(at.is_in_call == 1);
  CHECK(at.longest_s == 0.002);
  recorder.on_end(second.what);
  CHECK(recorder.position().is_in_call == 0);
  CHECK(recorder.position().for_s == 0);
}
