#pragma once

namespace troupe {

/// Once per process: sends UCX's warnings to standard error (its default is standard output, which belongs to
/// results), gives the signals SEGV, BUS, ILL and FPE back to whoever had them before UCX was loaded, and
/// HUP, by which it would show its state, to the system.
void tame_ucx_library();

/// While one exists, what UCX says on this thread is dropped, unless the environment raised its log level: a
/// lost peer and a worker destroyed with requests in flight are normal events here, reported in our own
/// words, and not worth a line for each request. (What makes UCX abort the process is printed by other
/// means.)
class ucx_silence {
 public:
  ucx_silence();
  ~ucx_silence();
  ucx_silence(const ucx_silence&) = delete;
  ucx_silence& operator=(const ucx_silence&) = delete;
};

}  // namespace troupe
