#include "troupe/job/call.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::job;

TEST_CASE("the description of a call contains every field in which calls can differ") {
  const call_request request{3, call_kind::train, 1, 60, 0, 0, "8 samples of [2]", "f32"};
  auto differs = [&](auto change) {
    auto other = request;
    change(other);
    return description_of(other) != description_of(request);
  };
  CHECK_FALSE(differs([](call_request&) {}));
  CHECK(differs([](call_request& other) { other.index = 4; }));
  CHECK(differs([](call_request& other) { other.source = 0; }));
  CHECK(differs([](call_request& other) { other.target_step = 61; }));
  CHECK(differs([](call_request& other) { other.num_batches = 1; }));
  CHECK(differs([](call_request& other) { other.num_microbatches = 2; }));
  CHECK(differs([](call_request& other) { other.kind = call_kind::evaluate; }));
  CHECK(differs([](call_request& other) { other.data = "9 samples of [2]"; }));
  CHECK(differs([](call_request& other) { other.content = "u8"; }));
  CHECK(differs([](call_request& other) { other.receiver = 0; }));
  CHECK_FALSE(differs([](call_request& other) { other.problem = "known to one process only"; }));
}

TEST_CASE("every kind of call has a name of its own") {
  auto text = [](call_kind kind) {
    return description_of(call_request{0, kind, 0, 0, 0, 0}).fields().front().value;
  };
  CHECK(text(call_kind::train).starts_with("fit "));
  CHECK(text(call_kind::evaluate).starts_with("evaluate "));
  CHECK(text(call_kind::hash).starts_with("weights_sha256 "));
  CHECK(text(call_kind::barrier).starts_with("barrier "));
  CHECK(text(call_kind::gather).starts_with("state_dict "));
  CHECK(text(call_kind::predict).starts_with("predict "));
  CHECK(text(call_kind::forward_backward).starts_with("forward_backward "));
  CHECK(text(call_kind::optimizer_step).starts_with("optimizer_step "));
  CHECK(text(call_kind::memory).starts_with("memory_report "));
  call_request saved{0, call_kind::gather, 0, 0, 0, 0};
  saved.receiver = 0;
  CHECK(description_of(saved).fields().front().value.starts_with("save "));
  CHECK(text(call_kind::record).starts_with("record "));
  CHECK(text(static_cast<call_kind>(77)).starts_with("unknown "));
}

TEST_CASE("the hash of a request is a part of the format of snapshots") {
  call_request request{7, call_kind::evaluate, 2, 40, 3, 4};
  request.data = "120 samples f32[2]";
  request.content = "f32, 0123";
  // Another value needs another version of the manifest: results of snapshots are not found again otherwise.
  CHECK(description_of(request).hash() == 0x0883883906f7bcec);
}
