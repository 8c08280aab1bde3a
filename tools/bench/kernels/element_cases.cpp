#include <array>

#include "bench/kernels/kernel_cases.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/dropout.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/random/philox.hpp"

namespace troupe::bench {
namespace {

using forward_function = tensor (*)(const tensor&);
using backward_function = tensor (*)(const tensor&, const tensor&);

void add_activation(const std::string& name, const tensor& x, forward_function forward,
                    backward_function backward, cases& all) {
  all.push_back(moving(name, x, {x, x}, [=] { forward(x); }));
  all.push_back(moving(name + " gradient", x, {x, x, x}, [=] { backward(x, x); }));
}

template <gelu_kind kind>
tensor gelu(const tensor& x) {
  return gelu_forward(x, kind);
}
template <gelu_kind kind>
tensor gelu_gradient(const tensor& dy, const tensor& x) {
  return gelu_backward(dy, x, kind);
}

}  // namespace

cases activations(const case_builder& make) {
  auto x = make.values({make.sizes.tokens(), 4 * make.sizes.width}, make.type, "x");
  cases all;
  add_activation("relu", x, relu_forward, relu_backward, all);
  add_activation("gelu exact", x, gelu<gelu_kind::exact>, gelu_gradient<gelu_kind::exact>, all);
  add_activation("gelu", x, gelu<gelu_kind::tanh>, gelu_gradient<gelu_kind::tanh>, all);
  add_activation("silu", x, silu_forward, silu_backward, all);
  add_activation("tanh", x, tanh_forward, tanh_backward, all);
  add_activation("sigmoid", x, sigmoid_forward, sigmoid_backward, all);
  all.push_back(moving("dropout", x, {x, x}, [=] {
    dropout(x, 0.1, philox_stream(1, random_purpose::activations, {0, 0, 0}));
  }));
  return all;
}

cases elementwise(const case_builder& make) {
  auto width = make.sizes.width, rows = make.sizes.tokens();
  auto a = make.values({rows, width}, dtype::f32, "a"), b = make.values({rows, width}, dtype::f32, "b");
  auto row = make.values({1, width}, dtype::f32, "row"),
       column = make.values({rows, 1}, dtype::f32, "column");
  auto positive = exp(a), condition = less(a, b);
  return {moving("add", a, {a, a, a}, [=] { add(a, b); }),
          moving("multiply", a, {a, a, a}, [=] { multiply(a, b); }),
          moving("divide", a, {a, a, a}, [=] { divide(a, b); }),
          moving("maximum", a, {a, a, a}, [=] { maximum(a, b); }),
          moving("add a row", a, {a, a}, [=] { add(a, row); }),
          moving("add a column", a, {a, a}, [=] { add(a, column); }),
          moving("add a number", a, {a, a}, [=] { add(a, 1.5F); }),
          moving("less", a, {a, a, condition}, [=] { less(a, b); }),
          moving("where", a, {condition, a, a, a}, [=] { where(condition, a, b); }),
          moving("exp", a, {a, a}, [=] { exp(a); }),
          moving("log", a, {a, a}, [=] { log(positive); }),
          moving("sqrt", a, {a, a}, [=] { sqrt(positive); }),
          moving("clamp", a, {a, a}, [=] { clamp(a, -0.5F, 0.5F); })};
}

cases casts(const case_builder& make) {
  shape extents{make.sizes.tokens(), make.sizes.width};
  auto a = make.values(extents, dtype::f32, "a"), b = make.values(extents, dtype::bf16, "b");
  cases all{moving("cast from f32", a, {a, b}, [=] { cast(a, dtype::bf16); }),
            moving("cast to f32", b, {a, b}, [=] { cast(b, dtype::f32); })};
  if (make.type != dtype::f32) all.push_back(moving("add to f32", b, {a, b, a}, [=] { add(a, b); }));
  return all;
}

cases reductions(const case_builder& make) {
  auto x = make.values({make.sizes.tokens(), make.sizes.width}, make.type, "x");
  auto of = [x](const char* name, tensor (*reduce)(const tensor&, const reduction_options&),
                std::vector<int> axes) { return moving(name, x, {x}, [=] { reduce(x, {.axes = axes}); }); };
  return {of("sum", sum, {}), of("sum of rows", sum, {0}), of("sum along rows", sum, {1}),
          of("max along rows", max, {1}), of("argmax along rows", argmax, {1})};
}

cases rearrangements(const case_builder& make) {
  auto width = make.sizes.width, rows = make.sizes.tokens();
  auto x = make.values({rows, width}, make.type, "x");
  auto heads = x.reshape({8, rows / 8, 4, width / 4});
  return {moving("concat", x, {x, x, x, x},
                 [=] {
                   concat(std::array{x, x}, 1);
                 }),
          moving("slice", x, {x}, [=] { slice(x, 1, 0, width / 2); }),
          moving("transpose", x, {x, x}, [=] { transpose(x); }), moving("transpose heads", x, {x, x}, [=] {
            transpose(heads, {0, 2, 1, 3});
          })};
}

}  // namespace troupe::bench
