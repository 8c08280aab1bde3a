#pragma once
#include <cstdint>
#include <functional>
#include <utility>

#include "troupe/execution/inbox/inbox.hpp"
#include "troupe/execution/replicas/uncharged.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::execution {

/// Sets the receiver of a message among lanes: the one with this index along the tag's axis.
inline void send_along_axis(transport::tensor_tag& tag, int index) {
  (tag.axis == layout::mesh_axis::dp ? tag.replica : tag.slice) = static_cast<std::uint32_t>(index);
}

/// The messages between the lanes of a stage in one G, as one of them sends and takes them. The lanes are
/// replicas, or of a G over tp slices, which are called replicas here too. Each message is of a bucket, and
/// has a number below that of replicas: which replica it is from, unless said otherwise.
class replica_messages {
 public:
  /// To the same stage of the replica that the tag names.
  using sender = std::function<void(const transport::tensor_tag& to, tensor value)>;

  /// `tag`: of this lane's stage, the step and G with its axis; its role, port and receiver along the axis
  /// are set for each message. `arrived` outlives it.
  replica_messages(int replica, int num_replicas, const transport::tensor_tag& tag, inbox& arrived,
                   sender send)
      : replica_(replica),
        num_replicas_(num_replicas),
        tag_(tag),
        arrived_(&arrived),
        send_(std::move(send)) {}

  bool is_of_slices() const { return tag_.axis == layout::mesh_axis::tp; }
  int replica() const { return replica_; }
  int num_replicas() const { return num_replicas_; }

  void send(transport::tensor_role role, int bucket, int number, int to, const tensor& value) const {
    send_(tag_of(role, bucket, number, to), uncharged(value));
  }
  /// Whether it has come to this replica.
  bool has(transport::tensor_role role, int bucket, int number) const {
    return arrived_->has(tag_of(role, bucket, number, replica_));
  }
  /// Of one that has come.
  tensor take(transport::tensor_role role, int bucket, int number) const {
    return arrived_->take(tag_of(role, bucket, number, replica_)).value();
  }

 private:
  transport::tensor_tag tag_of(transport::tensor_role role, int bucket, int number, int to) const {
    auto made = tag_;
    made.role = role;
    made.port = static_cast<std::uint32_t>(bucket * num_replicas_ + number);
    send_along_axis(made, to);
    return made;
  }

  int replica_, num_replicas_;
  transport::tensor_tag tag_;
  inbox* arrived_;
  sender send_;
};

}  // namespace troupe::execution
