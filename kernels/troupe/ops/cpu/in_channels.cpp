#include "troupe/ops/cpu/in_channels.hpp"

#include "troupe/ops/cpu/block_conversion.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t long_run = 64;  // elements

/// For channel c the `size` elements from from + c from_step on go to to + c to_step. Where it is one, a call
/// to copy it would take ten times as long as the element.
void copy_runs(const float* from, std::int64_t from_step, std::int64_t channels, std::int64_t size, float* to,
               std::int64_t to_step) {
  if (size == 1)
    for (std::int64_t channel = 0; channel < channels; ++channel)
      to[channel * to_step] = from[channel * from_step];
  else
    for (std::int64_t channel = 0; channel < channels; ++channel)
      std::copy_n(from + channel * from_step, size, to + channel * to_step);
}

}  // namespace

std::int64_t channels_in_group(const batch_norm_problem& of) {
  if (of.size >= long_run) return 1;
  constexpr std::int64_t room = 65536;  // elements, which the second cache holds
  auto most =
      std::min<std::int64_t>(of.size < 16 ? 16 : 4, room / std::max<std::int64_t>(1, of.batch * of.size));
  return std::clamp<std::int64_t>(of.channels / 8, 1, std::max<std::int64_t>(1, most));  // 8: for the threads
}

channel_group::channel_group(const batch_norm_problem& of, const tensor& x, std::int64_t first)
    : of_(of), x_(x), first_(first), count_(std::min(channels_in_group(of), of.channels - first)) {
  if (x.type() == dtype::f32 && of.size >= long_run) return;
  // A row of every channel, and a line of one image.
  room_ = tensor::empty({count_ * of.batch * of.size + count_ * of.size});
}

channel_runs channel_group::runs(std::int64_t channel) const {
  if (in_place())
    return {x_.values<float>().data() + channel * of_.size, of_.batch, of_.size, of_.channels * of_.size};
  auto run_size = of_.batch * of_.size;
  return {room_.values<float>().data() + (channel - first_) * run_size, 1, run_size, run_size};
}

void channel_group::read() {
  if (in_place()) return;
  for (std::int64_t image = 0; image < of_.batch; ++image) {
    auto room = line_room(image);
    const auto* line = read_block(x_, (image * of_.channels + first_) * of_.size, count_ * of_.size, room);
    if (count_ == 1 && line == room.data()) continue;
    copy_runs(line, of_.size, count_, of_.size, row(first_) + image * of_.size, of_.batch * of_.size);
  }
}

void channel_group::write() {
  if (in_place()) return;
  for (std::int64_t image = 0; image < of_.batch; ++image) {
    auto first = (image * of_.channels + first_) * of_.size;
    auto room = line_room(image);
    auto* line = block_to_write(x_, first, room);
    if (count_ > 1 || line != room.data())
      copy_runs(row(first_) + image * of_.size, of_.batch * of_.size, count_, of_.size, line, of_.size);
    write_block(x_, first, count_ * of_.size, line);
  }
}

/// A single channel's elements of an image are a line already.
std::span<float> channel_group::line_room(std::int64_t image) const {
  auto size = static_cast<std::size_t>(count_ * of_.size);
  if (count_ == 1) return {row(first_) + image * of_.size, size};
  return room_.values<float>().last(size);
}

}  // namespace troupe::cpu
