#pragma once
#include <oneapi/dnnl/dnnl_version.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace troupe::cpu {

/// A primitive's description, of its operands in the order of oneDNN. Version 2 wants them in an object of
/// their own, version 3 (Debian 13) side by side. Throws dnnl::error.
template <class Primitive, class... Operands>
typename Primitive::primitive_desc describe_primitive(const dnnl::engine& on,
                                                      const dnnl::primitive_attr& attributes,
                                                      const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  return {on, operands..., attributes};
#else
  return {typename Primitive::desc(operands...), attributes, on};
#endif
}

/// The same of a backward pass, which has the description of its forward besides.
template <class Primitive, class Forward, class... Operands>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& on,
                                                     const dnnl::primitive_attr& attributes,
                                                     const Forward& forward, const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  return {on, operands..., forward, attributes};
#else
  return {typename Primitive::desc(operands...), attributes, on, forward};
#endif
}

}  // namespace troupe::cpu
