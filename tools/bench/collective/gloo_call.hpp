#pragma once
#include <functional>
#include <string>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::bench {

/// The operation by gloo's own call over TCP, made by the thread that measures, in place on an f32 tensor in
/// CPU memory. All members of a group on one host do this alike. Throws bad_input if this build found no
/// gloo, or gloo has no such call.
std::function<void(tensor&)> make_gloo_call(const group_description& group, collective::store& keys,
                                            const std::string& operation);

}  // namespace troupe::bench
