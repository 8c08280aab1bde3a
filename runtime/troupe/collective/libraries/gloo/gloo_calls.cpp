#include "troupe/collective/libraries/gloo/gloo_backend.hpp"

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include <array>
#include <utility>

#include "troupe/collective/libraries/library_backend.hpp"
#include "troupe/collective/libraries/reduced_elements.hpp"

namespace troupe::collective::gloo_calls {

namespace {

/// The reduction of two arrays that gloo calls. A mean is a sum, which is divided at the end.
auto combine(dtype type, reduce_op op) {
  auto pairwise = op == reduce_op::mean ? reduce_op::sum : op;
  return [type, pairwise](void* result, const void* a, const void* b, std::size_t count) {
    std::array inputs{static_cast<const std::byte*>(a), static_cast<const std::byte*>(b)};
    auto* output = static_cast<std::byte*>(result);
    tree_reduce(inputs, {&output, 1}, static_cast<std::int64_t>(count), type, pairwise);
  };
}

/// Calls `body` with the elements as a type of their size that gloo has.
template <class Body>
void with_elements(tensor& x, Body body) {
  auto* first = x.bytes().data();
  auto count = static_cast<std::size_t>(x.num_elements());
  if (size_bytes(x.dtype()) == 8) return body(reinterpret_cast<std::int64_t*>(first), count);
  if (size_bytes(x.dtype()) == 4) return body(reinterpret_cast<std::int32_t*>(first), count);
  body(reinterpret_cast<std::uint8_t*>(first), count);
}

/// A copy that may be written to.
tensor own_copy(const tensor& x) {
  auto widened = reduced_elements::widened(x);
  return widened.bytes().data() == x.bytes().data() ? x.clone() : widened;
}

template <class Options>
void set_up(Options& options, tensor& x, reduce_op op) {
  with_elements(x, [&](auto* first, std::size_t count) { options.setOutput(first, count); });
  options.setReduceFunction(combine(x.dtype(), op));
}

}  // namespace

void all_reduce(const context& group, const collective_operation& what) {
  auto elements = own_copy(what.input);
  ::gloo::AllreduceOptions options(group);
  set_up(options, elements, what.signature.op);
  ::gloo::allreduce(options);
  reduced_elements::finish(elements, what.signature.op, group->size, what.output);
}

void reduce(const context& group, const collective_operation& what) {
  auto elements = own_copy(what.input);
  ::gloo::ReduceOptions options(group);
  set_up(options, elements, what.signature.op);
  options.setRoot(what.signature.root);
  ::gloo::reduce(options);
  if (group->rank == what.signature.root)
    reduced_elements::finish(elements, what.signature.op, group->size, what.output);
}

// Each member sends the others their parts and reduces the parts that it receives. No algorithm needs fewer
// bytes.
void reduce_scatter(const context& group, const collective_operation& what) {
  auto type = what.signature.type;
  auto own = what.parts[static_cast<std::size_t>(group->rank)];
  auto came = tensor::empty({own * group->size}, type);
  auto bytes = static_cast<std::int64_t>(size_bytes(type));
  std::vector<std::int64_t> sent, received(static_cast<std::size_t>(group->size), own * bytes);
  for (auto part : what.parts) sent.push_back(part * bytes);
  auto input = what.input;
  ::gloo::AlltoallvOptions options(group);
  options.setInput(reinterpret_cast<std::uint8_t*>(input.bytes().data()), sent);
  options.setOutput(reinterpret_cast<std::uint8_t*>(came.bytes().data()), received);
  ::gloo::alltoallv(options);
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < group->size; ++i)
    inputs.push_back(std::as_const(came).bytes().data() + i * own * bytes);
  auto output = what.output;
  std::byte* result = output.bytes().data();
  tree_reduce(inputs, {&result, 1}, own, type, what.signature.op);
}

}  // namespace troupe::collective::gloo_calls

// Elements are copied as bytes. gloo takes pointers to its inputs as non-const.
namespace troupe::collective::gloo_calls {

namespace {

std::uint8_t* bytes_of(const tensor& x) {
  auto handle = x;
  return reinterpret_cast<std::uint8_t*>(handle.bytes().data());
}

}  // namespace

void all_gather(const context& group, const collective_operation& what) {
  ::gloo::AllgathervOptions options(group);
  std::vector<std::size_t> sizes;
  for (auto part : what.parts)
    sizes.push_back(static_cast<std::size_t>(part) * size_bytes(what.signature.type));
  auto* own = bytes_of(what.output) +
              static_cast<std::size_t>(part_begin(what, group->rank)) * size_bytes(what.signature.type);
  if (bytes_of(what.input) != own) options.setInput(bytes_of(what.input), what.input.size_bytes());
  options.setOutput(bytes_of(what.output), sizes);
  ::gloo::allgatherv(options);
}

void broadcast(const context& group, const collective_operation& what) {
  ::gloo::BroadcastOptions options(group);
  options.setOutput(bytes_of(what.output), what.output.size_bytes());
  options.setRoot(what.signature.root);
  ::gloo::broadcast(options);
}

void gather(const context& group, const collective_operation& what) {
  ::gloo::GatherOptions options(group);
  options.setInput(bytes_of(what.input), what.input.size_bytes());
  if (group->rank == what.signature.root) options.setOutput(bytes_of(what.output), what.output.size_bytes());
  options.setRoot(what.signature.root);
  ::gloo::gather(options);
}

void scatter(const context& group, const collective_operation& what) {
  ::gloo::ScatterOptions options(group);
  auto size = what.output.size_bytes();
  if (group->rank == what.signature.root) {
    std::vector<std::uint8_t*> parts;
    for (int i = 0; i < group->size; ++i)
      parts.push_back(bytes_of(what.input) + static_cast<std::size_t>(i) * size);
    options.setInputs(parts, size);
  }
  options.setOutput(bytes_of(what.output), size);
  options.setRoot(what.signature.root);
  ::gloo::scatter(options);
}

void all_to_all(const context& group, const collective_operation& what) {
  ::gloo::AlltoallOptions options(group);
  options.setInput(bytes_of(what.input), what.input.size_bytes());
  options.setOutput(bytes_of(what.output), what.output.size_bytes());
  ::gloo::alltoall(options);
}

}  // namespace troupe::collective::gloo_calls
