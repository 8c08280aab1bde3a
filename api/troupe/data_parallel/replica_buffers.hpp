#pragma once
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/nn/module.hpp"

namespace troupe {

/// The model's buffers (running statistics) for each virtual replica of this member. The model holds the
/// buffers of one replica at a time.
class replica_buffers {
 public:
  /// The first replica uses the model's buffers; the others start as copies. A member without replicas has
  /// the model's.
  replica_buffers(nn::Module& model, int num_replicas);

  bool empty() const { return buffers_.empty(); }
  /// Makes the model use the buffers of `replica`.
  void use(int replica);
  /// Broadcasts the buffers of member 0's first replica to all replicas of all members.
  void broadcast(communicator& group);
  /// Handles named "replica.<number>/<name>", for snapshots.
  std::vector<named_tensor> state(const std::vector<int>& numbers) const;

 private:
  std::vector<nn::named_buffer> buffers_;
  std::vector<std::vector<tensor>> values_;  // by replica, then as buffers_
};

}  // namespace troupe
