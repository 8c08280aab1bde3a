#pragma once
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

namespace troupe::cpu {

/// Copies elements from one of oneDNN's formats into another one of the same shape and dtype, and fills the
/// new one's padding with zeros. It is dnnl::reorder in oneDNN 2. In version 3.7, as Debian 13 builds it,
/// that leaves elements and padding out (blocked weights of 3 x 1 x 3 x 3), so loops take its place there.
class relayout {
 public:
  virtual ~relayout() = default;
  /// Between the data of the two memory objects that it was made for, which must be set.
  virtual void run(const dnnl::stream& on) const = 0;
};
std::unique_ptr<const relayout> make_relayout(const dnnl::memory& from, const dnnl::memory& to);

}  // namespace troupe::cpu
