#pragma once

namespace troupe {

/// Once per process: sends UCX's warnings to standard error (its default is standard output, which belongs to
/// results) and gives the signals SEGV, BUS, ILL and FPE back to whoever had them before UCX was loaded.
void tame_ucx_library();

/// While one exists, what UCX warns about on this thread is dropped: destroying a worker with requests in
/// flight is intended here and not worth a line for each of them.
class ucx_silence {
 public:
  ucx_silence();
  ~ucx_silence();
  ucx_silence(const ucx_silence&) = delete;
  ucx_silence& operator=(const ucx_silence&) = delete;
};

}  // namespace troupe
