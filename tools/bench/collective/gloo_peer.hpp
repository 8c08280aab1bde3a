#pragma once
#include <memory>
#include <string>

#include "troupe/collective/group.hpp"
#include "troupe/collective/group/store.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::bench {

/// The operation with gloo's own calls over TCP, made by the thread that measures.
class gloo_peer {
 public:
  /// All members of a group on one host do this alike. Throws bad_input if this build found no gloo, or gloo
  /// has no such call.
  gloo_peer(const group_description& group, store& keys, const std::string& operation);
  ~gloo_peer();

  /// In place, as the group's call. f32 in CPU memory.
  void call(tensor& x);

 private:
  struct content;
  std::unique_ptr<content> content_;
};

}  // namespace troupe::bench
