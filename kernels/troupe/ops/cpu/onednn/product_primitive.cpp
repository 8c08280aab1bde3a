#include "troupe/ops/cpu/onednn/product_primitive.hpp"

#include <array>

#include "troupe/ops/cpu/onednn/describe_primitive.hpp"
namespace troupe::cpu {
namespace {

using dnnl::memory;

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type data_type_of(dtype type) {
  return type == dtype::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// `batch` dense matrices; a transposed one lies as [columns, rows].
memory::desc matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed,
                      dtype type) {
  auto row = transposed ? 1 : columns, column = transposed ? rows : 1;
  return {{batch, rows, columns}, data_type_of(type), memory::dims{rows * columns, row, column}};
}

dnnl::primitive_attr attributes_of(const matrix_product_shape& product) {
  dnnl::post_ops after;
  if (product.accumulate) after.append_sum(1);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::matmul::primitive_desc describe(const product_key& key) {
  const auto& product = key.product;
  auto attributes = attributes_of(product);
  auto a = matrices(product.batch, product.rows, product.inner, product.left_is_transposed, key.operands);
  auto b = matrices(product.right_is_shared ? 1 : product.batch, product.inner, product.columns,
                    product.right_is_transposed, key.operands);
  auto c = matrices(product.batch, product.rows, product.columns, false, key.result);
  if (!key.has_bias) return describe_primitive<dnnl::matmul>(cpu_engine(), attributes, a, b, c);
  auto bias = matrices(1, 1, product.columns, false, key.operands);
  return describe_primitive<dnnl::matmul>(cpu_engine(), attributes, a, b, bias, c);
}

memory without_data(const memory::desc& description) { return {description, cpu_engine(), nullptr}; }

void point(memory& at, const tensor& elements) {
  at.set_data_handle(const_cast<std::byte*>(elements.bytes().data()));  // oneDNN has one type for both
}

}  // namespace

product_primitive::product_primitive(const product_key& key) {
  auto chosen = describe(key);
  a_ = without_data(chosen.src_desc());
  b_ = without_data(chosen.weights_desc());
  if (key.has_bias) bias_ = without_data(chosen.bias_desc());
  c_ = without_data(chosen.dst_desc());
  scratchpad_ = without_data(chosen.scratchpad_desc());
  primitive_ = dnnl::matmul(chosen);
}

void product_primitive::run(const tensor& a, const tensor& b, const tensor& bias, tensor& c,
                            std::byte* scratchpad) {
  thread_local const dnnl::stream stream(cpu_engine());
  point(a_, a);
  point(b_, b);
  point(c_, c);
  scratchpad_.set_data_handle(scratchpad);
  std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, a_.get()},
                                            {DNNL_ARG_WEIGHTS, b_.get()},
                                            {DNNL_ARG_DST, c_.get()},
                                            {DNNL_ARG_SCRATCHPAD, scratchpad_.get()},
                                            {}}};
  int count = 4;
  if (bias.defined()) {
    point(bias_, bias);
    arguments[4] = {DNNL_ARG_BIAS, bias_.get()};
    count = 5;
  }
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream.get(), count, arguments.data()),
                          "could not execute a matrix product");
}

}  // namespace troupe::cpu
