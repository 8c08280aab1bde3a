#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/reduce.h>

#include <array>
#include <utility>

#include "troupe/collective/gloo/gloo_calls.hpp"
#include "troupe/collective/library/reduced_elements.hpp"

namespace troupe::gloo_calls {
namespace {

/// How gloo combines two arrays. The mean is a sum until it is finished.
auto combine(dtype type, reduce_op op) {
  auto pairwise = op == reduce_op::mean ? reduce_op::sum : op;
  return [type, pairwise](void* result, const void* a, const void* b, std::size_t count) {
    std::array inputs{static_cast<const std::byte*>(a), static_cast<const std::byte*>(b)};
    auto* output = static_cast<std::byte*>(result);
    tree_reduce(inputs, {&output, 1}, static_cast<std::int64_t>(count), type, pairwise);
  };
}

/// Calls `body` with the elements as gloo wants them: of a type of their size.
template <class Body>
void with_elements(tensor& x, Body body) {
  auto* first = x.bytes().data();
  auto count = static_cast<std::size_t>(x.num_elements());
  if (size_bytes(x.type()) == 8) return body(reinterpret_cast<std::int64_t*>(first), count);
  if (size_bytes(x.type()) == 4) return body(reinterpret_cast<std::int32_t*>(first), count);
  body(reinterpret_cast<std::uint8_t*>(first), count);
}

/// A copy that may be written to.
tensor own_copy(const tensor& x) {
  auto brought = reduced_elements::brought(x);
  return brought.bytes().data() == x.bytes().data() ? x.clone() : brought;
}

template <class Options>
void set_up(Options& options, tensor& x, reduce_op op) {
  with_elements(x, [&](auto* first, std::size_t count) { options.setOutput(first, count); });
  options.setReduceFunction(combine(x.type(), op));
}

}  // namespace

void all_reduce(const context& with, const collective_operation& what) {
  auto elements = own_copy(what.input);
  ::gloo::AllreduceOptions options(with);
  set_up(options, elements, what.signature.op);
  ::gloo::allreduce(options);
  reduced_elements::finish(elements, what.signature.op, with->size, what.output);
}

void reduce(const context& with, const collective_operation& what) {
  auto elements = own_copy(what.input);
  ::gloo::ReduceOptions options(with);
  set_up(options, elements, what.signature.op);
  options.setRoot(what.signature.root);
  ::gloo::reduce(options);
  if (with->rank == what.signature.root)
    reduced_elements::finish(elements, what.signature.op, with->size, what.output);
}

// Everybody brings each its part, and reduces what came: no more bytes than any other way.
void reduce_scatter(const context& with, const collective_operation& what) {
  auto type = what.signature.type;
  auto own = what.parts[static_cast<std::size_t>(with->rank)];
  auto came = tensor::empty({own * with->size}, type);
  auto bytes = static_cast<std::int64_t>(size_bytes(type));
  std::vector<std::int64_t> sent, received(static_cast<std::size_t>(with->size), own * bytes);
  for (auto part : what.parts) sent.push_back(part * bytes);
  auto input = what.input;
  ::gloo::AlltoallvOptions options(with);
  options.setInput(reinterpret_cast<std::uint8_t*>(input.bytes().data()), sent);
  options.setOutput(reinterpret_cast<std::uint8_t*>(came.bytes().data()), received);
  ::gloo::alltoallv(options);
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < with->size; ++i) inputs.push_back(std::as_const(came).bytes().data() + i * own * bytes);
  auto output = what.output;
  std::byte* result = output.bytes().data();
  tree_reduce(inputs, {&result, 1}, own, type, what.signature.op);
}

}  // namespace troupe::gloo_calls
