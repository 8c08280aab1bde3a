#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::detail {

/// The two versions of a stage's weights that an asynchronous schedule needs (PipeDream-2BW's double
/// buffering): the newest, which the parameters have, and the one before. A version is named by the number of
/// optimizer steps that made it.
///
/// Each has memory of its own, so that what a forward pass has kept of one stays as it was. The parameters
/// change from one to the other and back: code that keeps their tensors must take them anew.
class weight_versions {
 public:
  /// `uses`: all trainable parameters of the stage, which outlive this object. Those that share a value (tied
  /// weights) do so in both versions.
  explicit weight_versions(std::vector<parameter*> uses) : uses_(std::move(uses)) {}

  /// Copies the newest weights over those before; the copy is what the optimizer then changes. Nobody may
  /// need the weights before any more.
  void begin_update();
  /// After the optimizer's step number `step`.
  void end_update(std::uint64_t step) { newest_ = step + 1; }
  /// At a flush, and when the parameters were loaded: from now on all microbatches have the newest version,
  /// until the next update.
  void reset() { newest_.reset(); }

  /// While it lives, the parameters have the wanted version.
  class scope {
   public:
    /// Throws std::logic_error for a version that is not kept.
    scope(weight_versions& kept, std::uint64_t wanted);
    ~scope();
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    weight_versions* exchanged_ = nullptr;
  };

 private:
  void make_others();
  void exchange() noexcept;

  std::vector<parameter*> uses_;
  std::vector<parameter> others_;        ///< [uses] their other version, without gradients
  std::optional<std::uint64_t> newest_;  ///< none: no update since `reset`
};

}  // namespace troupe::detail
