#include "troupe/ops/cpu/convolution.hpp"

#include <oneapi/dnnl/dnnl_version.h>

#include <array>
#include <deque>
#include <span>
#include <utility>

#include "troupe/ops/cpu/onednn/describe_primitive.hpp"
#include "troupe/ops/cpu/onednn/library_threads.hpp"
#include "troupe/ops/cpu/onednn/reordering_primitive.hpp"
#include "troupe/ops/cpu/parallel.hpp"

namespace troupe::cpu {
namespace {

using dnnl::memory;
using tag = memory::format_tag;

enum class direction { forward, backward_input, backward_weight };

/// The parameters of a cached primitive.
struct key {
  direction towards;
  dtype type;
  bool has_bias;
  int threads;  ///< oneDNN fixes how work is split when it makes a primitive
  conv2d_problem problem;
  bool operator==(const key&) const = default;
};

memory::data_type data_type_of(dtype type) {
  return type == dtype::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// Extents as oneDNN's dims.
struct extents {
  memory::dims x, weight, bias, y, stride, dilation, padding;

  explicit extents(const conv2d_problem& problem)
      : x{problem.batch, problem.in_channels, problem.in.h, problem.in.w},
        weight{problem.out_channels, problem.in_channels / problem.options.groups, problem.kernel.h,
               problem.kernel.w},
        bias{problem.out_channels},
        y{problem.batch, problem.out_channels, problem.out.h, problem.out.w},
        stride{problem.options.stride.h, problem.options.stride.w},
        dilation{problem.options.dilation.h - 1, problem.options.dilation.w - 1},
        padding{problem.options.padding.h, problem.options.padding.w} {
    if (problem.options.groups == 1) return;
    weight[0] /= problem.options.groups;
    weight.insert(weight.begin(), problem.options.groups);
  }
  tag plain_weight() const { return weight.size() == 5 ? tag::goihw : tag::oihw; }
};

/// Lets oneDNN choose the format: its channel-blocked formats are up to twice as fast as plain ones, and
/// reordering costs a twentieth of that. If the result has too few channels to fill a block, most of the work
/// would be padding, and plain formats are faster, unless oneDNN reorders them itself (relayout.hpp), as
/// version 3 does.
tag inner_format(const key& wanted) {
  if (DNNL_VERSION_MAJOR >= 3) return tag::any;
  auto few = wanted.towards == direction::backward_input &&
             wanted.problem.in_channels / wanted.problem.options.groups < 8;
  return few ? tag::nchw : tag::any;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

dnnl::convolution_forward::primitive_desc forward_description(const key& wanted, const extents& size) {
  auto type = data_type_of(wanted.type);
  auto format = inner_format(wanted);
  memory::desc bias;
  if (wanted.has_bias) bias = {size.bias, type, tag::a};
  return describe_primitive<dnnl::convolution_forward>(
      this_engine(), attributes(), dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
      memory::desc(size.x, type, format), memory::desc(size.weight, type, tag::any), bias,
      memory::desc(size.y, type, format), size.stride, size.dilation, size.padding, size.padding);
}

reordering_primitive make_forward(const key& wanted, const extents& size) {
  auto type = data_type_of(wanted.type);
  auto description = forward_description(wanted, size);
  reordering_primitive made{dnnl::convolution_forward(description)};
  made.add_input(DNNL_ARG_SRC, {size.x, type, tag::nchw}, description.src_desc());
  made.add_input(DNNL_ARG_WEIGHTS, {size.weight, type, size.plain_weight()}, description.weights_desc());
  made.add_output(DNNL_ARG_DST, {size.y, type, tag::nchw}, description.dst_desc());
  if (wanted.has_bias) made.add_input(DNNL_ARG_BIAS, description.bias_desc(), description.bias_desc());
  made.add_scratchpad(description.scratchpad_desc());
  return made;
}

reordering_primitive make_backward_input(const key& wanted, const extents& size) {
  auto type = data_type_of(wanted.type);
  auto format = inner_format(wanted);
  auto description = describe_backward<dnnl::convolution_backward_data>(
      this_engine(), attributes(), forward_description(wanted, size), dnnl::algorithm::convolution_direct,
      memory::desc(size.x, type, format), memory::desc(size.weight, type, tag::any),
      memory::desc(size.y, type, format), size.stride, size.dilation, size.padding, size.padding);
  reordering_primitive made{dnnl::convolution_backward_data(description)};
  made.add_input(DNNL_ARG_DIFF_DST, {size.y, type, tag::nchw}, description.diff_dst_desc());
  made.add_input(DNNL_ARG_WEIGHTS, {size.weight, type, size.plain_weight()}, description.weights_desc());
  made.add_output(DNNL_ARG_DIFF_SRC, {size.x, type, tag::nchw}, description.diff_src_desc());
  made.add_scratchpad(description.scratchpad_desc());
  return made;
}

reordering_primitive make_backward_weight(const key& wanted, const extents& size) {
  auto type = data_type_of(wanted.type);
  constexpr auto f32 = memory::data_type::f32;
  memory::desc bias;
  if (wanted.has_bias) bias = {size.bias, f32, tag::a};
  auto description = describe_backward<dnnl::convolution_backward_weights>(
      this_engine(), attributes(), forward_description(wanted, size), dnnl::algorithm::convolution_direct,
      memory::desc(size.x, type, tag::any), memory::desc(size.weight, f32, tag::any), bias,
      memory::desc(size.y, type, tag::any), size.stride, size.dilation, size.padding, size.padding);
  reordering_primitive made{dnnl::convolution_backward_weights(description)};
  made.add_input(DNNL_ARG_SRC, {size.x, type, tag::nchw}, description.src_desc());
  made.add_input(DNNL_ARG_DIFF_DST, {size.y, type, tag::nchw}, description.diff_dst_desc());
  made.add_output(DNNL_ARG_DIFF_WEIGHTS, {size.weight, f32, size.plain_weight()},
                  description.diff_weights_desc());
  if (wanted.has_bias)
    made.add_output(DNNL_ARG_DIFF_BIAS, description.diff_bias_desc(), description.diff_bias_desc());
  made.add_scratchpad(description.scratchpad_desc());
  return made;
}

reordering_primitive make(const key& wanted) {
  extents size(wanted.problem);
  switch (wanted.towards) {
    case direction::forward:
      return make_forward(wanted, size);
    case direction::backward_input:
      return make_backward_input(wanted, size);
    case direction::backward_weight:
      break;
  }
  return make_backward_weight(wanted, size);
}

/// The calling thread's cached primitive for `wanted`, created at the first call. A full cache evicts the
/// oldest one.
reordering_primitive& primitive_for(const key& wanted) {
  constexpr std::size_t most = 256;
  thread_local std::deque<std::pair<key, reordering_primitive>> known;
  for (auto& [made_for, primitive] : known)
    if (made_for == wanted) return primitive;
  if (known.size() == most) known.pop_front();
  return known.emplace_back(wanted, make(wanted)).second;
}

int convolution_threads(const conv2d_problem& problem) {
  auto in_a_group = problem.in_channels / problem.options.groups;
  auto multiply_adds = problem.batch * problem.out_channels * problem.out.h * problem.out.w * in_a_group *
                       problem.kernel.h * problem.kernel.w;
  return threads_for(multiply_adds / multiply_adds_per_element);
}

void run(const key& wanted, std::span<void* const> elements) {
  library_threads scope(wanted.threads);
  primitive_for(wanted).run(elements);
}

void* elements_of(const tensor& value) { return const_cast<std::byte*>(value.bytes().data()); }

}  // namespace

bool convolution_takes(dtype type) {
  if (type == dtype::bf16) {
    auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
    return (isa & needed) == needed;
  }
  return type == dtype::f32;
}

void convolution_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight,
                         const tensor& bias, tensor& y) {
  run({direction::forward, x.dtype(), bias.defined(), convolution_threads(problem), problem},
      std::array{elements_of(x), elements_of(weight), elements_of(y), elements_of(bias)});
}

void convolution_backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight,
                                tensor& dx) {
  run({direction::backward_input, dy.dtype(), false, convolution_threads(problem), problem},
      std::array{elements_of(dy), elements_of(weight), elements_of(dx)});
}

void convolution_backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy,
                                 tensor& dweight, tensor& dbias) {
  run({direction::backward_weight, x.dtype(), dbias.defined(), convolution_threads(problem), problem},
      std::array{elements_of(x), elements_of(dy), elements_of(dweight), elements_of(dbias)});
}

}  // namespace troupe::cpu
