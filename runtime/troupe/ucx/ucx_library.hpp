#pragma once

namespace troupe::ucx {

/// Whether the UCX of this process is older than this version.
bool is_ucx_before(unsigned major, unsigned minor);

/// Once per process: directs UCX's warnings to standard error (its default is standard output), restores the
/// signal handlers for SEGV, BUS, ILL and FPE that were installed before UCX was loaded, and calls
/// restore_debug_signal.
void configure_ucx_library();

/// Gives SIGHUP the disposition back that it had before UCX was loaded: for a job the signal is a request to
/// stop, or ignored (nohup), but UCX's handler prints UCX's state. A handler that is not UCX's stays. Call it
/// before the disposition of SIGHUP is read.
void restore_debug_signal();

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

}  // namespace troupe::ucx
