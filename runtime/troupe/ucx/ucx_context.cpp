#include "troupe/ucx/ucx_context.hpp"

#include <utility>
#include <vector>

#include "troupe/ucx/ucx_error.hpp"
#include "troupe/ucx/ucx_library.hpp"
#include "troupe/ucx/ucx_overrides.hpp"

namespace troupe::ucx {
namespace {

struct config_deleter {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using ucx_config = std::unique_ptr<ucp_config_t, config_deleter>;

/// Nothing we use needs registered memory, so there is no need to cache it (nor to tell a cache what is
/// unmapped). But without the cache UCX 1.18 crashes when an endpoint with error handling fails or is closed
/// while a rendezvous waits (mended in 1.22), as groups have them. With it, UCX aborts when a worker is
/// destroyed with requests, as the data plane's are.
const char* registration_cache(rendezvous_scheme large) {
  return large == rendezvous_scheme::put && !is_ucx_before(1, 14) ? "try" : "n";
}

ucx_config make_config(const std::string& transports, const std::string& interface, rendezvous_scheme large) {
  ucp_config_t* read = nullptr;
  check_ucx(ucp_config_read(nullptr, nullptr, &read), "read the UCX configuration");
  ucx_config config(read);
  std::vector<std::pair<const char*, std::string>> settings = {
      {"TLS", transports},
      {"NET_DEVICES", interface},
      {"RNDV_SCHEME", large == rendezvous_scheme::get ? "get_zcopy" : "put_zcopy"},
      // Above this an eager message would be cut into segments and copied twice.
      {"RNDV_THRESH", "8k"},
      {"RCACHE_ENABLE", registration_cache(large)},
  };
  // A host that does not answer must not block connect().
  if (transports.find("tcp") != std::string::npos)
    settings.emplace_back(is_ucx_before(1, 17) ? "CONN_NB" : "TCP_CONN_NB", "y");
  // A small tensor with its header fits into an element of shared memory's queue.
  // Its buffers of 8 KiB are made so many at a time, and each is written to. UCX's number of 512 is a fifth
  // of the pages that a new process touches: 4 MiB for each worker, which few messages need.
  if (transports.find("sysv") != std::string::npos) {
    settings.emplace_back("MM_FIFO_ELEM_SIZE", "256");
    settings.emplace_back("MM_RX_BUFS_GROW", "128");
  }
  for (const auto& [name, value] : settings)
    check_ucx(ucp_config_modify(config.get(), name, value.c_str()),
              "set UCX_" + std::string(name) + "=" + value);
  return config;
}

}  // namespace

void ucx_context_deleter::operator()(ucp_context_h context) const {
  memory_events_left_out scope;
  ucp_cleanup(context);
}

void check_ucx(ucs_status_t status, std::string_view action, std::source_location where) {
  if (status != UCS_OK) throw ucx_error(action, status, where);
}

ucx_context make_ucx_context(const std::string& transports, const std::string& interface,
                             rendezvous_scheme large) {
  configure_ucx_library();
  auto config = make_config(transports, interface, large);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 0;
  ucp_context_h context = nullptr;
  memory_events_left_out scope;
  check_ucx(ucp_init(&params, config.get(), &context),
            "initialise UCX over " + transports + " on network interface " + interface);
  return ucx_context(context);
}

}  // namespace troupe::ucx
