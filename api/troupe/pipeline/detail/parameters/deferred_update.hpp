#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/pipeline/detail/parameters/tied_gradients.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe::detail {

/// The update of a stage's weights that is deferred into the forwards of the next step (see
/// stage_program::defer_update): a forward waits for the step of each weight when an operation comes to it.
class deferred_update {
 public:
  /// `parameters`: those that are stepped; `is_stepped` takes an index in them, and says whether that one has
  /// its new value. Other uses of a tied weight wait for its first use. The parameters outlive this.
  deferred_update(const std::vector<named_parameter>& parameters,
                  const std::vector<tied_gradients::weight>& tied,
                  std::function<bool(std::size_t index)> is_stepped);
  deferred_update(const deferred_update&) = delete;
  deferred_update& operator=(const deferred_update&) = delete;
  ~deferred_update();

  /// From now on each weight is pending until a forward has waited for it or end is called.
  void begin(const program::stage_program::progress_callback& callback);
  /// The same where no update is deferred, so that a module which reads a weight without waiting fails in any
  /// run, and not only when an update happens to be late.
  void require_waits();
  /// The update is complete, or given up.
  void end();
  bool is_pending() const { return callback_ != nullptr; }
  /// Calls the callback, not to wait. No effect unless an update is pending.
  void progress();

 private:
  class weight_update;

  void wait_for(std::size_t index);

  std::function<bool(std::size_t)> is_stepped_;
  std::vector<std::shared_ptr<weight_update>> updates_;
  std::vector<parameter*> uses_;
  program::stage_program::progress_callback callback_;  ///< null: none is pending
};

}  // namespace troupe::detail
