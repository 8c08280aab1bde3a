#pragma once

namespace troupe {

/// Once per process: directs UCX's warnings to standard error (its default is standard output), restores the
/// signal handlers for SEGV, BUS, ILL and FPE that were installed before UCX was loaded, and restores the
/// default action of HUP, which UCX uses to print its state.
void configure_ucx_library();

/// Drops UCX's log messages on this thread during its lifetime, unless the environment raised UCX's log
/// level. A lost peer and a worker destroyed with requests in flight are normal events here; the transport
/// reports them once, UCX would log a line per request. Messages of UCX's own aborts are not dropped.
class ucx_log_suppressor {
 public:
  ucx_log_suppressor();
  ~ucx_log_suppressor();
  ucx_log_suppressor(const ucx_log_suppressor&) = delete;
  ucx_log_suppressor& operator=(const ucx_log_suppressor&) = delete;
};

}  // namespace troupe
