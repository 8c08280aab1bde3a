#pragma once
#include <gloo/context.h>

#include <memory>

#include "troupe/collective/operation.hpp"

/// The collectives of gloo, one function for each. They block, and throw gloo::Exception.
namespace troupe::gloo_calls {

using context = std::shared_ptr<::gloo::Context>;

void all_reduce(const context& with, const collective_operation& what);
void reduce_scatter(const context& with, const collective_operation& what);
void reduce(const context& with, const collective_operation& what);
void all_gather(const context& with, const collective_operation& what);
void broadcast(const context& with, const collective_operation& what);
void gather(const context& with, const collective_operation& what);
void scatter(const context& with, const collective_operation& what);
void all_to_all(const context& with, const collective_operation& what);

}  // namespace troupe::gloo_calls
