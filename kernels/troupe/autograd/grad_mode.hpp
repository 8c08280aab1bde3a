#pragma once

namespace troupe {

/// Whether operations on this thread are recorded for backward; true unless a no_grad is active.
bool is_grad_enabled();

/// While it lives, operations of this thread are not recorded. May be nested.
class no_grad {
 public:
  no_grad();
  ~no_grad();
  no_grad(const no_grad&) = delete;
  no_grad& operator=(const no_grad&) = delete;

 private:
  bool outer_;
};

/// While it lives, operations of this thread are recorded, also within a no_grad.
class enable_grad {
 public:
  enable_grad();
  ~enable_grad();
  enable_grad(const enable_grad&) = delete;
  enable_grad& operator=(const enable_grad&) = delete;

 private:
  bool outer_;
};

}  // namespace troupe
