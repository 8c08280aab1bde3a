#pragma once
#include <vector>

#include "troupe/collective/communicator.hpp"
#include "troupe/nn/module.hpp"

namespace troupe {

/// The buffers of a model (running statistics) of each virtual replica that a member hosts: the model holds
/// those of one replica at a time.
class replica_buffers {
 public:
  /// Those of the first replica are the model's own; the others begin as copies.
  replica_buffers(nn::Module& model, int num_replicas);

  bool empty() const { return buffers_.empty(); }
  /// The model computes with those of `replica` from now on.
  void use(int replica);
  /// Those of member 0's first replica come to all replicas of all members.
  void broadcast(communicator& group);
  /// Live handles, "replica.<first_number + i>/<name>".
  std::vector<named_tensor> state(int first_number) const;

 private:
  std::vector<nn::named_buffer> buffers_;
  std::vector<std::vector<tensor>> values_;  // by replica, then as buffers_
};

}  // namespace troupe
