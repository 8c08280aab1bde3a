#pragma once
#include <cstddef>
#include <vector>

namespace troupe::detail {

/// The order in which passes of one kind use units, as the last one has used them: tells what comes next.
class pass_order {
 public:
  /// Of the first pass: a guess.
  explicit pass_order(std::vector<std::size_t> expected) : expected_(std::move(expected)) {}

  void begin();
  /// The units with which the next pass begins, at most `count`.
  std::vector<std::size_t> first(std::size_t count) const;
  /// A unit is used, another one than before.
  void note(std::size_t unit);
  /// The next units, at most `count`; none while this pass goes another way.
  std::vector<std::size_t> next(std::size_t count) const;
  /// The pass has ended: the next one is expected to go the same way.
  void end();

 private:
  std::vector<std::size_t> expected_, seen_;
  std::size_t position_ = 0;  ///< in expected_, behind the unit that is used
  bool is_known_ = false;
};

}  // namespace troupe::detail
