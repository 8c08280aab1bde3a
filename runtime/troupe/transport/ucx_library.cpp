#include "troupe/transport/ucx_library.hpp"

// ucs/debug/log_def.h relies on the includes before it.
#include <ucs/config/types.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "troupe/transport/ucx_overrides.hpp"

namespace troupe {
namespace {

thread_local int silent = 0;

/// Whoever raises UCX's log level wants to see everything.
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

}  // namespace

void tame_ucx_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    check_ucx_overrides();
    ucs_log_push_handler(to_standard_error);
    ucx_silence expected;  // it warns about signals that the environment told it to leave alone
    for (int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ucs_debug_disable_signal(signal_number);
  });
}

ucx_silence::ucx_silence() { ++silent; }
ucx_silence::~ucx_silence() { --silent; }

}  // namespace troupe
