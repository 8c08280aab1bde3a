#include "troupe/ucx/ucx_worker.hpp"

#include "troupe/posix/sysv_limits.hpp"
#include "troupe/ucx/ucx_context.hpp"
#include "troupe/ucx/ucx_error.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::ucx {

ucx_worker::ucx_worker(ucp_context_h context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  auto status = ucp_worker_create(context, &params, &worker_);
  if (status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE)
    throw ucx_error("create a UCX worker (" + to_text(posix::read_sysv_limits()) + ')', status);
  check_ucx(status, "create a UCX worker");
  status = ucp_worker_get_efd(worker_, &event_fd_);
  if (status == UCS_OK) return;
  ucp_worker_destroy(worker_);
  check_ucx(status, "get the event descriptor of a UCX worker");
}

ucx_worker::~ucx_worker() {
  ucx_log_suppressor requests_in_flight_are_expected;
  ucp_worker_destroy(worker_);
}

std::vector<std::byte> ucx_worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check_ucx(ucp_worker_get_address(worker_, &address, &length), "get the address of a UCX worker");
  auto* first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> bytes(first, first + length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

void ucx_worker::handle_messages(unsigned id, ucp_am_recv_callback_t callback, void* argument) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = callback;
  params.arg = argument;
  check_ucx(ucp_worker_set_am_recv_handler(worker_, &params), "set the message handler of a UCX worker");
}

ucp_ep_params_t endpoint_params(std::span<const std::byte> address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  return params;
}

}  // namespace troupe::ucx
