#include "troupe/job/call.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("a call's text tells all in which calls can differ") {
  call_request request{3, call_kind::train, 1, 60, 0, 0};
  CHECK(to_string(request) == "train (call 3, source 1, step 60, 0 batches of 0 microbatches)");
  auto differs = [&](auto change) {
    auto other = request;
    change(other);
    return to_string(other) != to_string(request);
  };
  CHECK(differs([](call_request& other) { other.index = 4; }));
  CHECK(differs([](call_request& other) { other.source = 0; }));
  CHECK(differs([](call_request& other) { other.target_step = 61; }));
  CHECK(differs([](call_request& other) { other.num_batches = 1; }));
  CHECK(differs([](call_request& other) { other.num_microbatches = 2; }));
  CHECK(differs([](call_request& other) { other.kind = call_kind::evaluate; }));
}

TEST_CASE("every kind of call has a name of its own") {
  auto text = [](call_kind kind) { return to_string(call_request{0, kind, 0, 0, 0, 0}); };
  CHECK(text(call_kind::train).starts_with("train "));
  CHECK(text(call_kind::evaluate).starts_with("evaluate "));
  CHECK(text(call_kind::hash).starts_with("hash "));
  CHECK(text(call_kind::barrier).starts_with("barrier "));
  CHECK(text(static_cast<call_kind>(77)).starts_with("unknown "));
}
