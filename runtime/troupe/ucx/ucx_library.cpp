#include "troupe/ucx/ucx_library.hpp"

// ucs/debug/log_def.h relies on the includes before it.
#include <ucs/config/types.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <dlfcn.h>
#include <ucp/api/ucp.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

#include "troupe/ucx/ucx_overrides.hpp"

namespace troupe::ucx {
namespace {

thread_local int silent = 0;

/// True if the user raised UCX's log level: all messages are shown then.
bool is_debugging() { return ucs_global_opts.log_component.log_level > UCS_LOG_LEVEL_WARN; }

ucs_log_func_rc_t to_standard_error(const char*, unsigned, const char*, ucs_log_level_t,
                                    const ucs_log_component_config_t*, const char* format,
                                    va_list arguments) {
  if (silent > 0 && !is_debugging()) return UCS_LOG_FUNC_RC_STOP;
  char text[512];
  std::vsnprintf(text, sizeof(text), format, arguments);
  std::fprintf(stderr, "ucx: %s\n", text);
  return UCS_LOG_FUNC_RC_STOP;
}

/// Whether UCX's own handler of `number` is installed.
bool is_handled_by_ucx(int number) {
  struct sigaction present {};
  if (::sigaction(number, nullptr, &present) != 0) return false;
  if (present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN) return false;
  Dl_info handler{};
  if (::dladdr(reinterpret_cast<const void*>(present.sa_handler), &handler) == 0 || !handler.dli_fname)
    return false;
  return std::string_view(handler.dli_fname).find("libucs") != std::string_view::npos;
}

}  // namespace

bool is_ucx_before(unsigned major, unsigned minor) {
  unsigned found_major = 0, found_minor = 0, release = 0;
  ucp_get_version(&found_major, &found_minor, &release);
  return std::pair(found_major, found_minor) < std::pair(major, minor);
}

void restore_debug_signal() {
  const auto number = static_cast<int>(ucs_global_opts.debug_signo);
  if (number > 0 && is_handled_by_ucx(number)) ucs_debug_disable_signal(number);
}

void configure_ucx_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    check_ucx_overrides();
    ucs_log_push_handler(to_standard_error);
    ucx_log_suppressor expected;  // UCX warns about signals that the environment excludes
    for (int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ucs_debug_disable_signal(signal_number);
    restore_debug_signal();
  });
}

ucx_log_suppressor::ucx_log_suppressor() { ++silent; }
ucx_log_suppressor::~ucx_log_suppressor() { --silent; }

}  // namespace troupe::ucx
