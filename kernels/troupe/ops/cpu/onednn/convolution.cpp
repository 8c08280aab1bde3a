#include "troupe/ops/cpu/convolution.hpp"

#include <array>
#include <deque>
#include <span>
#include <utility>

#include "troupe/ops/cpu/onednn/bordered_primitive.hpp"
#include "troupe/ops/cpu/onednn/library_threads.hpp"
#include "troupe/ops/cpu/parallel.hpp"

namespace troupe::cpu {
namespace {

using dnnl::memory;
using tag = memory::format_tag;

enum class direction { forward, backward_input, backward_weight };

/// What a primitive is made for, and found by.
struct key {
  direction towards;
  dtype type;
  bool has_bias;
  int threads;  ///< oneDNN fixes how work is split when it makes a primitive
  conv2d_problem of;
  bool operator==(const key&) const = default;
};

memory::data_type data_type_of(dtype type) {
  return type == dtype::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// Extents as oneDNN wants them.
struct extents {
  memory::dims x, weight, bias, y, stride, dilation, padding;

  explicit extents(const conv2d_problem& of)
      : x{of.batch, of.in_channels, of.in.h, of.in.w},
        weight{of.out_channels, of.in_channels / of.options.groups, of.kernel.h, of.kernel.w},
        bias{of.out_channels},
        y{of.batch, of.out_channels, of.out.h, of.out.w},
        stride{of.options.stride.h, of.options.stride.w},
        dilation{of.options.dilation.h - 1, of.options.dilation.w - 1},
        padding{of.options.padding.h, of.options.padding.w} {
    if (of.options.groups == 1) return;
    weight[0] /= of.options.groups;
    weight.insert(weight.begin(), of.options.groups);
  }
  tag plain_weight() const { return weight.size() == 5 ? tag::goihw : tag::oihw; }
};

/// Formats are left to oneDNN: its blocks of channels run at up to twice the rate of plain formats, and the
/// way in and out costs a twentieth of that. Where the channels of the result would hardly fill a block,
/// most of the work would go into padding, and plain formats are faster.
tag inner_format(const key& of) {
  auto few = of.towards == direction::backward_input && of.of.in_channels / of.of.options.groups < 8;
  return few ? tag::nchw : tag::any;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

dnnl::convolution_forward::primitive_desc forward_description(const key& of, const extents& size) {
  auto type = data_type_of(of.type);
  auto format = inner_format(of);
  memory::desc bias;
  if (of.has_bias) bias = {size.bias, type, tag::a};
  return {{dnnl::prop_kind::forward_training,
           dnnl::algorithm::convolution_direct,
           {size.x, type, format},
           {size.weight, type, tag::any},
           bias,
           {size.y, type, format},
           size.stride,
           size.dilation,
           size.padding,
           size.padding},
          attributes(),
          this_engine()};
}

bordered_primitive make_forward(const key& of, const extents& size) {
  auto type = data_type_of(of.type);
  auto description = forward_description(of, size);
  bordered_primitive made{dnnl::convolution_forward(description)};
  made.add_input(DNNL_ARG_SRC, {size.x, type, tag::nchw}, description.src_desc());
  made.add_input(DNNL_ARG_WEIGHTS, {size.weight, type, size.plain_weight()}, description.weights_desc());
  made.add_output(DNNL_ARG_DST, {size.y, type, tag::nchw}, description.dst_desc());
  if (of.has_bias) made.add_input(DNNL_ARG_BIAS, description.bias_desc(), description.bias_desc());
  made.add_scratchpad(description.scratchpad_desc());
  return made;
}

bordered_primitive make_backward_input(const key& of, const extents& size) {
  auto type = data_type_of(of.type);
  auto format = inner_format(of);
  dnnl::convolution_backward_data::primitive_desc description{{dnnl::algorithm::convolution_direct,
                                                               {size.x, type, format},
                                                               {size.weight, type, tag::any},
                                                               {size.y, type, format},
                                                               size.stride,
                                                               size.dilation,
                                                               size.padding,
                                                               size.padding},
                                                              attributes(),
                                                              this_engine(),
                                                              forward_description(of, size)};
  bordered_primitive made{dnnl::convolution_backward_data(description)};
  made.add_input(DNNL_ARG_DIFF_DST, {size.y, type, tag::nchw}, description.diff_dst_desc());
  made.add_input(DNNL_ARG_WEIGHTS, {size.weight, type, size.plain_weight()}, description.weights_desc());
  made.add_output(DNNL_ARG_DIFF_SRC, {size.x, type, tag::nchw}, description.diff_src_desc());
  made.add_scratchpad(description.scratchpad_desc());
  return made;
}

bordered_primitive make_backward_weight(const key& of, const extents& size) {
  auto type = data_type_of(of.type);
  constexpr auto f32 = memory::data_type::f32;
  memory::desc bias;
  if (of.has_bias) bias = {size.bias, f32, tag::a};
  dnnl::convolution_backward_weights::primitive_desc description{{dnnl::algorithm::convolution_direct,
                                                                  {size.x, type, tag::any},
                                                                  {size.weight, f32, tag::any},
                                                                  bias,
                                                                  {size.y, type, tag::any},
                                                                  size.stride,
                                                                  size.dilation,
                                                                  size.padding,
                                                                  size.padding},
                                                                 attributes(),
                                                                 this_engine(),
                                                                 forward_description(of, size)};
  bordered_primitive made{dnnl::convolution_backward_weights(description)};
  made.add_input(DNNL_ARG_SRC, {size.x, type, tag::nchw}, description.src_desc());
  made.add_input(DNNL_ARG_DIFF_DST, {size.y, type, tag::nchw}, description.diff_dst_desc());
  made.add_output(DNNL_ARG_DIFF_WEIGHTS, {size.weight, f32, size.plain_weight()},
                  description.diff_weights_desc());
  if (of.has_bias)
    made.add_output(DNNL_ARG_DIFF_BIAS, description.diff_bias_desc(), description.diff_bias_desc());
  made.add_scratchpad(description.scratchpad_desc());
  return made;
}

bordered_primitive make(const key& of) {
  extents size(of.of);
  switch (of.towards) {
    case direction::forward:
      return make_forward(of, size);
    case direction::backward_input:
      return make_backward_input(of, size);
    case direction::backward_weight:
      break;
  }
  return make_backward_weight(of, size);
}

/// The calling thread's primitive for `of`, made at the first call. The oldest one makes room for a new one.
bordered_primitive& primitive_for(const key& of) {
  constexpr std::size_t most = 256;
  thread_local std::deque<std::pair<key, bordered_primitive>> known;
  for (auto& [made_for, primitive] : known)
    if (made_for == of) return primitive;
  if (known.size() == most) known.pop_front();
  return known.emplace_back(of, make(of)).second;
}

int convolution_threads(const conv2d_problem& of) {
  auto in_a_group = of.in_channels / of.options.groups;
  auto multiply_adds =
      of.batch * of.out_channels * of.out.h * of.out.w * in_a_group * of.kernel.h * of.kernel.w;
  return threads_for(multiply_adds / multiply_adds_per_element);
}

void run(const key& of, std::span<void* const> elements) {
  library_threads scope(of.threads);
  primitive_for(of).run(elements);
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

void convolution_forward(const conv2d_problem& of, const tensor& x, const tensor& weight, const tensor& bias,
                         tensor& y) {
  run({direction::forward, x.dtype(), bias.defined(), convolution_threads(of), of},
      std::array{elements_of(x), elements_of(weight), elements_of(y), elements_of(bias)});
}

void convolution_backward_input(const conv2d_problem& of, const tensor& dy, const tensor& weight,
                                tensor& dx) {
  run({direction::backward_input, dy.dtype(), false, convolution_threads(of), of},
      std::array{elements_of(dy), elements_of(weight), elements_of(dx)});
}

void convolution_backward_weight(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                                 tensor& dbias) {
  run({direction::backward_weight, x.dtype(), dbias.defined(), convolution_threads(of), of},
      std::array{elements_of(x), elements_of(dy), elements_of(dweight), elements_of(dbias)});
}

}  // namespace troupe::cpu
