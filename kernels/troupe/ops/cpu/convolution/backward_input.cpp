#include <algorithm>
#include <vector>

#include "troupe/ops/cpu/convolution/convolution.hpp"
#include "troupe/ops/cpu/convolution/convolution_geometry.hpp"
#include "troupe/ops/cpu/convolution/window_product.hpp"
#include "troupe/ops/cpu/product/default_rounding.hpp"

namespace troupe::cpu {
namespace {

/// A row or column k of the kernel, and by how much the window that has it over a pixel is further than the
/// pixel.
struct reaching_tap {
  std::int64_t k, shift;
};

/// Along one axis, the pixels first, first + stride, ..., which the same taps reach.
struct pixel_class {
  std::int64_t first, count;
  std::vector<reaching_tap> taps;
};

struct axis {
  std::int64_t in, kernel, stride, padding, dilation;
};

std::vector<pixel_class> classes_along(const axis& side) {
  std::vector<pixel_class> classes;
  for (std::int64_t first = 0; first < std::min(side.stride, side.in); ++first) {
    auto& added =
        classes.emplace_back(pixel_class{first, (side.in - first + side.stride - 1) / side.stride, {}});
    for (std::int64_t k = 0; k < side.kernel; ++k)
      if (auto from_window = first + side.padding - k * side.dilation; from_window % side.stride == 0)
        added.taps.push_back({k, from_window / side.stride});
  }
  return classes;
}

struct extent {
  std::int64_t before, size;
};

/// Zeros before the first window, and windows with zeros on both sides, so that all shifts stay inside.
extent padded_extent(const std::vector<pixel_class>& classes) {
  extent result{0, 1};
  for (const auto& each : classes)
    for (auto tap : each.taps) result.before = std::max(result.before, -tap.shift);
  for (const auto& each : classes)
    for (auto tap : each.taps) result.size = std::max(result.size, result.before + tap.shift + each.count);
  return result;
}

/// Pixels that the same taps reach: their gradients are a product of weights and shifted windows.
struct pixel_grid {
  const pixel_class *rows, *columns;
  std::vector<std::int64_t> taps;       ///< offsets in the padded gradients
  std::vector<packed_weights> weights;  ///< of each group: [inputs, taps]

  size_2d size() const { return {rows->count, columns->count}; }
};

class backward_input_pass {
 public:
  backward_input_pass(const conv2d_problem& problem, const tensor& weight, const product_loops& loops)
      : problem_(problem),
        loops_(loops),
        rows_(classes_along({problem.in.h, problem.kernel.h, problem.options.stride.h,
                             problem.options.padding.h, problem.options.dilation.h})),
        columns_(classes_along({problem.in.w, problem.kernel.w, problem.options.stride.w,
                                problem.options.padding.w, problem.options.dilation.w})) {
    auto high = padded_extent(rows_), wide = padded_extent(columns_);
    planes_ = {.plane = problem.out,
               .before = {high.before, wide.before},
               .stride = {1, 1},
               .phase = {high.size, wide.size}};
    for (const auto& row : rows_)
      for (const auto& column : columns_) add_grid(row, column, weight.values<float>().data());
  }

  /// Into how many parts `run` can cut an image: none where several grids are put together.
  std::int64_t num_parts() const { return grids_.size() == 1 ? parts_of_image(problem_) : 1; }

  void run(const image_range& images, const float* dy, float* dx) const {
    default_rounding scope;
    auto inputs = group_inputs(problem_), outputs = group_outputs(problem_);
    auto copied = zero_planes(planes_, outputs);
    auto* padded = copied.values<float>().data();
    for (auto image = images.begin; image < images.end; ++image) {
      planes_.copy(dy + image * outputs * size_of(problem_.out), outputs, padded);
      for (const auto& grid : grids_)
        run_grid(grid, padded, image % problem_.options.groups, images.part,
                 dx + image * inputs * size_of(problem_.in));
    }
  }

 private:
  void add_grid(const pixel_class& row, const pixel_class& column, const float* weight) {
    auto& grid = grids_.emplace_back(pixel_grid{&row, &column, {}, {}});
    auto outputs = group_outputs(problem_), inputs = group_inputs(problem_);
    for (std::int64_t o = 0; o < outputs; ++o)
      for (auto k : row.taps)
        for (auto l : column.taps)
          grid.taps.push_back(o * planes_.plane_size() +
                              planes_.offset_of({planes_.before.h + k.shift, planes_.before.w + l.shift}));
    if (grid.taps.empty()) return;
    auto inner = std::ssize(grid.taps), kernel = size_of(problem_.kernel);
    auto sorted = tensor::empty({inputs, inner});
    for (std::int64_t group = 0; group < problem_.options.groups; ++group) {
      auto* to = sorted.values<float>().data();
      for (std::int64_t c = 0; c < inputs; ++c)
        for (std::int64_t o = 0; o < outputs; ++o)
          for (auto k : row.taps)
            for (auto l : column.taps)
              *to++ = weight[((group * outputs + o) * inputs + c) * kernel + k.k * problem_.kernel.w + l.k];
      grid.weights.emplace_back(sorted.values<float>().data(), inputs, inner, loops_);
    }
  }

  void run_grid(const pixel_grid& grid, const float* padded, std::int64_t group, const image_part& part,
                float* dx) const {
    auto plane = size_of(problem_.in);
    if (grid.taps.empty()) return store(grid, nullptr, dx);
    const auto& weights = grid.weights[static_cast<std::size_t>(group)];
    const window_matrix windows{padded, grid.taps.data(), grid.size(), planes_.phase.w};
    if (grids_.size() == 1)
      return multiply_windows(weights, windows, part, {.c = dx, .stride = plane}, loops_);
    auto size = size_of(grid.size());
    auto computed = tensor::empty({group_inputs(problem_), size});
    auto* from = computed.values<float>().data();
    multiply_windows(weights, windows, part, {.c = from, .stride = size}, loops_);
    store(grid, from, dx);
  }

  /// Writes a grid's gradients to its pixels; zeros if there are none.
  void store(const pixel_grid& grid, const float* from, float* dx) const {
    auto stride = problem_.options.stride;
    for (std::int64_t c = 0; c < group_inputs(problem_); ++c)
      for (std::int64_t i = 0; i < grid.rows->count; ++i) {
        auto* row = dx + (c * problem_.in.h + grid.rows->first + i * stride.h) * problem_.in.w;
        for (std::int64_t j = 0; j < grid.columns->count; ++j)
          row[grid.columns->first + j * stride.w] = from ? *from++ : 0;
      }
  }

  const conv2d_problem& problem_;
  const product_loops& loops_;
  std::vector<pixel_class> rows_, columns_;
  padded_planes planes_;
  std::vector<pixel_grid> grids_;
};

}  // namespace

void convolution_backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight,
                                tensor& dx, const product_loops& loops) {
  const backward_input_pass pass(problem, weight, loops);
  const auto* from = dy.values<float>().data();
  auto* to = dx.values<float>().data();
  for_each_image_range(problem, pass.num_parts(),
                       [&](const image_range& images) { pass.run(images, from, to); });
}

}  // namespace troupe::cpu
