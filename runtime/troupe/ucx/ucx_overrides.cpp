#include "troupe/ucx/ucx_overrides.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <ucm/api/ucm.h>
#include <ucs/sys/uid.h>
#include <ucs/type/status.h>
#include <uct/api/uct.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/proc_folder.hpp"
#include "troupe/ucx/ucx_library.hpp"

// As in UCX's ucs/sys/sys.h, which is not installed; the same since UCX 1.8.
extern "C" ucs_status_t ucs_sysv_alloc(std::size_t* size, std::size_t max_size, void** address, int flags,
                                       const char* name, int* segment);
// As in UCX's ucp/core/ucp_ep.h; the same since UCX 1.12.
extern "C" void ucp_ep_err_pending_purge(uct_pending_req_t* pending, void* status);

namespace {

/// UCX's own definition of what `replacement` replaces.
template <class Function>
Function* original(Function* /*replacement*/, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Of the namespaces that processes which share memory have in common.
std::uint64_t namespaces() {
  constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15;  // spreads small numbers over all bits
  std::uint64_t all = 0;
  for (const char* kind : {"net", "ipc", "pid", "user"}) {
    auto file = std::string("/proc/self/ns/") + kind;
    struct stat found {};
    auto status = ::stat(file.c_str(), &found);
    // Kernels may be built without the others: then all processes are in the same one.
    if (kind == std::string_view("net")) troupe::check_posix(status, "read " + file + " (mount /proc)");
    all = (all ^ found.st_ino) * golden_ratio;
  }
  // UCX finds a process's memory, and whether it lives, under its id in /proc.
  if (!troupe::posix::proc_is_of_this_namespace())
    all = (all ^ static_cast<std::uint64_t>(::getpid())) * golden_ratio;
  return all;
}

/// Whether UCX takes a wireup message that waits to be sent when its endpoint ends for a bug, and aborts.
bool is_wireup_purge_fatal() { return troupe::ucx::is_ucx_before(1, 14); }

thread_local int num_events_left_out = 0;

}  // namespace

extern "C" ucs_status_t ucs_sysv_alloc(std::size_t* size, std::size_t max_size, void** address, int flags,
                                       const char* name, int* segment) {
  constexpr int of_others = S_IRWXG | S_IRWXO;
  static auto* const allocate = original(&ucs_sysv_alloc, "ucs_sysv_alloc");
  return allocate(size, max_size, address, flags & ~of_others, name, segment);
}

extern "C" std::uint64_t ucs_get_system_id() {
  static const auto id = original(&ucs_get_system_id, "ucs_get_system_id")() ^ namespaces();
  return id;
}

// UCX has taken the message out of its queue and refers to it nowhere else. It stays allocated (about 1 KB),
// since the layout of UCX's requests, which is needed to free it, is not public.
extern "C" void ucp_ep_err_pending_purge(uct_pending_req_t* pending, void* status) {
  static auto* const purge = original(&ucp_ep_err_pending_purge, "ucp_ep_err_pending_purge");
  static const auto* const send_wireup = ::dlsym(RTLD_DEFAULT, "ucp_wireup_msg_progress");
  static const bool is_fatal = is_wireup_purge_fatal();
  if (is_fatal && reinterpret_cast<const void*>(pending->func) == send_wireup) return;
  purge(pending, status);
}

extern "C" ucs_status_t ucm_set_event_handler(int events, int priority, ucm_event_callback_t callback,
                                              void* argument) {
  static auto* const set = original(&ucm_set_event_handler, "ucm_set_event_handler");
  return num_events_left_out > 0 ? UCS_OK : set(events, priority, callback, argument);
}

extern "C" void ucm_unset_event_handler(int events, ucm_event_callback_t callback, void* argument) {
  static auto* const unset = original(&ucm_unset_event_handler, "ucm_unset_event_handler");
  if (num_events_left_out == 0) unset(events, callback, argument);
}

namespace troupe::ucx {
namespace {

void check_override(void* replacement, const char* name, const std::string& effect) {
  if (::dlsym(RTLD_DEFAULT, name) == replacement && ::dlsym(RTLD_NEXT, name)) return;
  throw std::runtime_error("UCX in this program calls its own " + std::string(name) + ", with which " +
                           effect + ": link the program with -Wl,--export-dynamic-symbol=" + name +
                           " and the shared libraries of UCX");
}

}  // namespace

void check_ucx_overrides() {
  const std::string shared = "shared memory is neither private nor safe between containers";
  check_override(reinterpret_cast<void*>(&ucs_sysv_alloc), "ucs_sysv_alloc", shared);
  check_override(reinterpret_cast<void*>(&ucs_get_system_id), "ucs_get_system_id", shared);
  const std::string events = "a process may hang when it connects or ends";
  check_override(reinterpret_cast<void*>(&ucm_set_event_handler), "ucm_set_event_handler", events);
  check_override(reinterpret_cast<void*>(&ucm_unset_event_handler), "ucm_unset_event_handler", events);
  if (is_wireup_purge_fatal())
    check_override(reinterpret_cast<void*>(&ucp_ep_err_pending_purge), "ucp_ep_err_pending_purge",
                   "the process may abort where a peer is lost");
  ucs_get_system_id();  // an exception is thrown here instead of inside UCX
}

memory_events_left_out::memory_events_left_out() { ++num_events_left_out; }
memory_events_left_out::~memory_events_left_out() { --num_events_left_out; }

}  // namespace troupe::ucx
