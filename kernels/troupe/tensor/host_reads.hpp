#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What the host is to know of results on a GPU: losses, and whether an index or a label is out of range. An
/// operation waits for the GPU to tell it; while a scope lives on its thread, it leaves it here instead, and
/// all is read with one wait. Not thread-safe.
class host_reads {
 public:
  using reader = std::function<void(const tensor& on_cpu)>;
  /// losses: what checks leaves, and also the numbers of a loss (loss_totals), which are not known before
  /// read_all().
  enum class content { checks, losses };

  /// Of what an error is told: "step 3 microbatch 1".
  struct moment {
    std::uint64_t step = 0;
    int microbatch = 0;
  };

  /// Operations of this thread leave in `into` what they would wait for, until the scope ends. Scopes may lie
  /// within each other: the innermost counts.
  class scope {
   public:
    scope(host_reads& into, content left, const moment& during);
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();

   private:
    friend class host_reads;
    host_reads& into_;
    content left_;
    moment during_;
    scope* outer_;
  };

  /// For an operation that has put `on_gpu`, which no one changes, where its host is to read it: leaves it to
  /// the scope of this thread. False if there is none that takes `what`: the operation waits.
  static bool leave(content what, const tensor& on_gpu, reader read);

  /// Waits for all that is left, and calls its readers in order. Forgets it, whatever happens. The
  /// std::invalid_argument of a reader is thrown again with the scope's moment before its text.
  void read_all();
  void clear() { left_.clear(); }
  bool is_empty() const { return left_.empty(); }

 private:
  struct item {
    tensor on_gpu;
    reader read;
    moment during;
  };

  std::vector<item> left_;
};

}  // namespace troupe
