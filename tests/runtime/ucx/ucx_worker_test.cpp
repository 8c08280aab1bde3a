#include "troupe/ucx/ucx_worker.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/processes/spawn_ranks.hpp"
#include "troupe/ucx/ucx_context.hpp"
#include "troupe/ucx/ucx_library.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

using namespace troupe;
using namespace troupe::ucx;
using namespace troupe::testing;

namespace {

constexpr unsigned message = 1;

ucs_status_t count_message(void* count, const void*, std::size_t, void*, std::size_t,
                           const ucp_am_recv_param_t*) {
  ++*static_cast<int*>(count);
  return UCS_OK;
}

ucp_ep_h connect(const ucx_worker& from, const std::vector<std::byte>& to) {
  auto params = endpoint_params(to);
  ucp_ep_h endpoint = nullptr;
  check_ucx(ucp_ep_create(from.get(), &params, &endpoint), "connect");
  return endpoint;
}

ucs_status_ptr_t send(ucp_ep_h over, const std::vector<std::byte>& bytes, std::uint32_t attributes,
                      unsigned flags = 0) {
  ucp_request_param_t param{};
  param.op_attr_mask = attributes | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  return ucp_am_send_nbx(over, message, nullptr, 0, bytes.data(), bytes.size(), &param);
}

/// Whether the message is on its way. Otherwise it waits for nothing: it is not sent.
bool send_at_once(ucp_ep_h over, const std::vector<std::byte>& bytes) {
  return send(over, bytes, UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) == nullptr;
}

/// One worker fills its socket to another, which does not read. The other one then asks for the number of the
/// endpoint, which UCX needs for a rendezvous; the reply has to wait, and the first worker ends.
void end_with_reply_in_queue() {
  auto context = make_ucx_context("tcp", "lo");
  int count = 0;
  ucx_worker reader(context.get());
  auto worker = std::make_unique<ucx_worker>(context.get());
  for (auto* each : {&reader, worker.get()}) each->handle_messages(message, count_message, &count);
  auto* to_reader = connect(*worker, reader.address());
  auto* to_worker = connect(reader, worker->address());
  const std::vector<std::byte> bytes(200);
  for (auto* each : {to_reader, to_worker})
    while (!send_at_once(each, bytes)) worker->progress(), reader.progress();
  while (count < 2) worker->progress(), reader.progress();

  constexpr int many = 1000;  // calls of progress without an effect
  for (int full = 0; full < many; ++full) {
    while (send_at_once(to_reader, bytes)) full = 0;
    worker->progress();
  }
  expect(UCS_PTR_IS_PTR(send(to_worker, bytes, 0, UCP_AM_SEND_FLAG_RNDV)), "a rendezvous begins");
  {
#if defined(__SANITIZE_ADDRESS__)
    __lsan::ScopedDisabler the_reply_is_never_freed;  // see ucx_overrides.cpp
#endif
    for (int i = 0; i < many; ++i) worker->progress();
  }
  ucx_log_suppressor requests_in_flight_are_expected;
  worker.reset();
}

}  // namespace

TEST_CASE("a worker may end while its reply to a process that connects waits to be sent") {
  spawn_ranks(1, [](test_rank&) { end_with_reply_in_queue(); });
}
