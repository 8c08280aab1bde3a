#pragma once

namespace troupe {

/// Whether operations on this thread record what their backward needs; they do unless a no_grad lives.
bool is_recording();

/// While it lives, operations of this thread compute and record nothing. Nests.
class no_grad {
 public:
  no_grad();
  ~no_grad();
  no_grad(const no_grad&) = delete;
  no_grad& operator=(const no_grad&) = delete;

 private:
  bool outer_;
};

/// While it lives, operations of this thread record, also within a no_grad.
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
