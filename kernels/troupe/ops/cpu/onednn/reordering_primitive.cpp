#include "troupe/ops/cpu/onednn/reordering_primitive.hpp"

#include <utility>

#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {
namespace {

dnnl::stream& this_stream() {
  thread_local dnnl::stream stream(this_engine());
  return stream;
}

dnnl::memory unplaced(const dnnl::memory::desc& description) { return {description, this_engine(), nullptr}; }

}  // namespace

const dnnl::engine& this_engine() {
  thread_local const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

reordering_primitive::reordering_primitive(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

void reordering_primitive::add_input(int argument, const dnnl::memory::desc& plain,
                                     const dnnl::memory::desc& own) {
  add(argument, plain, own, true);
}

void reordering_primitive::add_output(int argument, const dnnl::memory::desc& plain,
                                      const dnnl::memory::desc& own) {
  add(argument, plain, own, false);
}

void reordering_primitive::add_scratchpad(const dnnl::memory::desc& own) {
  auto memory = unplaced(own);
  place_in_scratch(memory);
  arguments_.emplace(DNNL_ARG_SCRATCHPAD, memory);
}

void reordering_primitive::add(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& own,
                               bool is_input) {
  operand added{unplaced(plain), {}, is_input, {}};
  if (plain == own) {
    added.own = added.plain;
  } else {
    added.own = unplaced(own);
    place_in_scratch(added.own);
    added.reorder = is_input ? make_relayout(added.plain, added.own) : make_relayout(added.own, added.plain);
  }
  arguments_.emplace(argument, added.own);
  operands_.push_back(std::move(added));
}

void reordering_primitive::place_in_scratch(const dnnl::memory& memory) {
  constexpr std::int64_t alignment = 64;
  in_scratch_.emplace_back(memory, scratch_bytes_);
  auto size = static_cast<std::int64_t>(memory.get_desc().get_size());
  scratch_bytes_ += (size + alignment - 1) / alignment * alignment;
}

void reordering_primitive::run(std::span<void* const> elements) {
  auto scratch = tensor::empty({scratch_bytes_}, dtype::u8);
  for (auto& [memory, offset] : in_scratch_) memory.set_data_handle(scratch.bytes().data() + offset);
  for (std::size_t i = 0; i < operands_.size(); ++i) operands_[i].plain.set_data_handle(elements[i]);
  auto& stream = this_stream();
  for (const auto& [plain, own, is_input, reorder] : operands_)
    if (is_input && reorder) reorder->run(stream);
  primitive_.execute(stream, arguments_);
  for (const auto& [plain, own, is_input, reorder] : operands_)
    if (!is_input && reorder) reorder->run(stream);
  stream.wait();
}

}  // namespace troupe::cpu
