#include <gloo/allgatherv.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/scatter.h>

#include "troupe/collective/gloo/gloo_calls.hpp"

// Elements travel as bytes. gloo takes pointers to what it reads as pointers to what it writes.
namespace troupe::gloo_calls {
namespace {

std::uint8_t* bytes_of(const tensor& x) {
  auto handle = x;
  return reinterpret_cast<std::uint8_t*>(handle.bytes().data());
}

}  // namespace

void all_gather(const context& with, const collective_operation& what) {
  ::gloo::AllgathervOptions options(with);
  std::vector<std::size_t> sizes;
  for (auto part : what.parts)
    sizes.push_back(static_cast<std::size_t>(part) * size_bytes(what.signature.type));
  auto* own = bytes_of(what.output) +
              static_cast<std::size_t>(part_begin(what, with->rank)) * size_bytes(what.signature.type);
  if (bytes_of(what.input) != own) options.setInput(bytes_of(what.input), what.input.size_bytes());
  options.setOutput(bytes_of(what.output), sizes);
  ::gloo::allgatherv(options);
}

void broadcast(const context& with, const collective_operation& what) {
  ::gloo::BroadcastOptions options(with);
  options.setOutput(bytes_of(what.output), what.output.size_bytes());
  options.setRoot(what.signature.root);
  ::gloo::broadcast(options);
}

void gather(const context& with, const collective_operation& what) {
  ::gloo::GatherOptions options(with);
  options.setInput(bytes_of(what.input), what.input.size_bytes());
  if (with->rank == what.signature.root) options.setOutput(bytes_of(what.output), what.output.size_bytes());
  options.setRoot(what.signature.root);
  ::gloo::gather(options);
}

void scatter(const context& with, const collective_operation& what) {
  ::gloo::ScatterOptions options(with);
  auto size = what.output.size_bytes();
  if (with->rank == what.signature.root) {
    std::vector<std::uint8_t*> parts;
    for (int i = 0; i < with->size; ++i)
      parts.push_back(bytes_of(what.input) + static_cast<std::size_t>(i) * size);
    options.setInputs(parts, size);
  }
  options.setOutput(bytes_of(what.output), size);
  options.setRoot(what.signature.root);
  ::gloo::scatter(options);
}

void all_to_all(const context& with, const collective_operation& what) {
  ::gloo::AlltoallOptions options(with);
  options.setInput(bytes_of(what.input), what.input.size_bytes());
  options.setOutput(bytes_of(what.output), what.output.size_bytes());
  ::gloo::alltoall(options);
}

}  // namespace troupe::gloo_calls
