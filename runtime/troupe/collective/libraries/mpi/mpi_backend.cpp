#include "troupe/collective/libraries/mpi/mpi_backend.hpp"

#include <limits>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::collective {
namespace {

constexpr int head_tag = 1;
constexpr int elements_tag = 2;

int bytes_of(const tensor& x) {
  if (x.size_bytes() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw_invalid("mpi", "at most 2^31 - 1 bytes a message", describe(x));
  return static_cast<int>(x.size_bytes());
}

}  // namespace

mpi_backend::mpi_backend(group_description group, store& keys, mpi_group_resources& resources, MPI_Comm comm)
    : library_backend(std::move(group), keys), resources_(resources), comm_(comm) {}

mpi_backend::~mpi_backend() {
  if (!is_closed_) MPI_Comm_free(&comm_);
}

algorithm mpi_backend::run(const collective_operation& what, std::uint64_t sequence) {
  if (what.signature.kind == collective_kind::send) return send(what, sequence);
  if (what.signature.kind == collective_kind::receive) return receive(what, sequence);
  return run_collective(what, sequence);
}

algorithm mpi_backend::run_collective(const collective_operation& what, std::uint64_t sequence) {
  enter(what, sequence);
  auto agreement = std::make_shared<mpi_call>();
  check_mpi(mpi_calls::exchange_signatures(*agreement, comm_, what));
  in_flight_.push_back(agreement);
  co_await until([&] { return has_ended(*agreement, what, sequence); });
  require_agreement(agreement->signatures, sequence);
  if (what.signature.count > 0) {
    auto elements = std::make_shared<mpi_call>();
    check_mpi(mpi_calls::begin(*elements, comm_, what, group().member, group().size()));
    in_flight_.push_back(elements);
    co_await until([&] { return has_ended(*elements, what, sequence); });
    mpi_calls::finish(*elements, what, group().member, group().size());
  }
  leave();
}

algorithm mpi_backend::send(const collective_operation& what, std::uint64_t sequence) {
  auto head = std::make_shared<mpi_call>();
  head->own = what.signature;
  check_mpi(MPI_Isend(&head->own, sizeof head->own, MPI_BYTE, what.peer, head_tag, comm_, &head->request));
  in_flight_.push_back(head);
  auto elements = std::make_shared<mpi_call>();
  elements->input = what.input;
  check_mpi(MPI_Isend(std::as_const(elements->input).bytes().data(), bytes_of(what.input), MPI_BYTE,
                      what.peer, elements_tag, comm_, &elements->request));
  in_flight_.push_back(elements);
  co_await until([&] { return has_ended(*head, what, sequence); });
  co_await until([&] { return has_ended(*elements, what, sequence); });
}

algorithm mpi_backend::receive(const collective_operation& what, std::uint64_t sequence) {
  auto head = std::make_shared<mpi_call>();
  check_mpi(MPI_Irecv(&head->own, sizeof head->own, MPI_BYTE, what.peer, head_tag, comm_, &head->request));
  in_flight_.push_back(head);
  co_await until([&] { return has_ended(*head, what, sequence); });
  require_message(head->own, what, sequence);
  auto elements = std::make_shared<mpi_call>();
  elements->output = tensor::empty(what.output.shape(), what.output.dtype());
  check_mpi(MPI_Irecv(elements->output.bytes().data(), bytes_of(what.output), MPI_BYTE, what.peer,
                      elements_tag, comm_, &elements->request));
  in_flight_.push_back(elements);
  co_await until([&] { return has_ended(*elements, what, sequence); });
  auto output = what.output;
  output.copy_from(elements->output);
}

bool mpi_backend::has_ended(mpi_call& given, const collective_operation& what, std::uint64_t sequence) {
  int flag = 0;
  try {
    check_mpi(MPI_Test(&given.request, &flag, MPI_STATUS_IGNORE));
  } catch (const mpi_error& failure) {
    fail(failure.what(), what, sequence);
  }
  if (flag) in_flight_.remove_if([&](const auto& each) { return each.get() == &given; });
  return flag != 0;
}

/// MPI cannot cancel a collective. Its memory is kept, and its results are never copied to the caller.
void mpi_backend::close(const collective_error&) noexcept {
  is_closed_ = true;
  for (auto& each : std::exchange(in_flight_, {})) resources_.keep(std::move(each));
}

}  // namespace troupe::collective
