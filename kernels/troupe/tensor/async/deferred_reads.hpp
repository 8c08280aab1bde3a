#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What the host reads of results on a GPU later than the operation that computes them: losses, and whether
/// an index or a label is out of range. An operation waits for the GPU to read it, unless a scope lives on
/// its thread: then it is read with all that is deferred there, with one wait. Not thread-safe.
class deferred_reads {
 public:
  using reader = std::function<void(const tensor& on_cpu)>;
  /// losses: checks, and also the numbers of a loss (loss_totals), which are not known before read_all().
  enum class content { checks, losses };

  /// Whose results are read, for errors: "step 3 microbatch 1".
  struct origin {
    std::uint64_t step = 0;
    int microbatch = 0;
  };

  /// Operations of this thread defer to `to` what they would wait for, until the scope ends. Of scopes within
  /// each other the innermost counts.
  class scope {
   public:
    scope(deferred_reads& to, content what, const origin& from);
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();

   private:
    friend class deferred_reads;
    deferred_reads& to_;
    content what_;
    origin from_;
    scope* outer_;
  };

  /// For an operation whose host is to read `on_gpu`, which no one changes: defers it to the scope of this
  /// thread. False if there is none that takes `what`: the operation waits.
  static bool defer(content what, const tensor& on_gpu, reader read);

  /// Waits for all that is deferred, and calls its readers in order. Forgets it, whatever happens. The
  /// std::invalid_argument of a reader is thrown again with its origin before its text.
  void read_all();
  void clear() { deferred_.clear(); }

 private:
  struct item {
    tensor on_gpu;
    reader read;
    origin from;
  };

  std::vector<item> deferred_;
};

}  // namespace troupe
