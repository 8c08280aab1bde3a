#include "troupe/pipeline/detail/agreement/function_fingerprint.hpp"

#include <cstring>
#include <utility>

#include "troupe/agreement/job_description.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t rows = 4, width = 16;
constexpr std::uint64_t seed = 1;

/// Distinct numbers in [-1, 1].
tensor some_numbers(shape extents) {
  auto numbers = tensor::empty(std::move(extents));
  auto values = numbers.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 37 + 11) % 64) / 32.0F - 1.0F;
  return numbers;
}

/// Collects the bytes of a function's results.
class record_of_bytes {
 public:
  void add(const tensor& value) {
    if (!value.defined()) return;
    auto bytes = value.bytes();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add(double value) {
    auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void add(const std::string& text) {
    auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::string hash() const { return agreement::short_hash(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Runs `function`, which adds results; an exception adds its message instead.
template <class Function>
void add_outcome(record_of_bytes& to, const Function& function) {
  try {
    function();
  } catch (const std::exception& problem) {
    to.add(problem.what());
  }
}

void add_loss(record_of_bytes& to, const nn::Loss& loss, const tensor& targets) {
  auto output = leaf(some_numbers({rows, width}));
  auto result = loss(output, targets, 0.5);
  to.add(result.loss_sum);
  to.add(static_cast<double>(result.num_correct));
  to.add(static_cast<double>(result.num_counted));
  to.add(result.loss.value);
  if (!result.loss.requires_gradient()) return;
  result.loss.backward();
  to.add(output.gradient());
}

void add_steps(record_of_bytes& to, const optim::Optimizer& optimizer) {
  auto numbers = [](std::int64_t first, std::int64_t count) {
    return some_numbers({first + count}).rows(first, count).clone();
  };
  parameter weight("weight", numbers(0, 6).reshape({2, 3}), tensor::zeros({2, 3}));
  parameter bias("bias", numbers(6, 3), tensor::zeros({3}));
  auto state = optim::make_state(optimizer, {{"0.weight", &weight}, {"0.bias", &bias}});
  for (std::uint64_t step : {0, 1, 2, 10, 100, 1000, 10'000, 100'000, 1'000'000}) {
    weight.gradient().copy_from(numbers(static_cast<std::int64_t>(step % 7), 6).reshape({2, 3}));
    bias.gradient().copy_from(numbers(static_cast<std::int64_t>(step % 5), 3));
    weight.has_gradient = bias.has_gradient = true;
    state->apply(step);
    to.add(weight.value());
    to.add(bias.value());
  }
}

}  // namespace

std::string fingerprint(const nn::Loss& loss) {
  record_of_bytes record;
  // Labels 0 and 1 are valid for any number of classes.
  auto labels = tensor::from(std::vector<std::int64_t>{0, 1, 1, 0}, {rows});
  add_outcome(record, [&] { add_loss(record, loss, labels); });
  auto others = some_numbers({rows + 1, width}).rows(1, rows).clone();  // not the output itself
  add_outcome(record, [&] { add_loss(record, loss, others); });
  return record.hash();
}

std::string fingerprint(const optim::Optimizer& optimizer) {
  record_of_bytes record;
  add_outcome(record, [&] { add_steps(record, optimizer); });
  return record.hash();
}

std::string fingerprint(const optim::lr_schedule& schedule) {
  record_of_bytes record;
  add_outcome(record, [&] {
    for (std::uint64_t step = 0; step < 100; ++step) record.add(schedule(step));
    for (std::uint64_t step = 100; step <= 1'000'000; step += step / 10) record.add(schedule(step));
  });
  return record.hash();
}

std::string fingerprint(const initializer& begin, const shape& extents) {
  if (!begin) return "zero";
  record_of_bytes record;
  add_outcome(record, [&] {
    auto value = tensor::zeros(shape(std::vector<std::int64_t>(static_cast<std::size_t>(extents.rank()), 2)));
    begin(value, seed, "0.weight");
    record.add(value);
  });
  return record.hash();
}

}  // namespace troupe::detail
