#pragma once
#include <mpi.h>

#include <vector>

#include "troupe/collective/operation.hpp"

namespace troupe {

/// One call of MPI in flight, with all memory that it touches: nothing else may, since MPI cannot take a
/// collective call back.
struct mpi_call {
  MPI_Request request = MPI_REQUEST_NULL;
  tensor input, output;                    ///< of its own, or the caller's input
  std::vector<int> counts, offsets;        ///< by member
  std::vector<call_signature> signatures;  ///< of all members, the first one's is sent
  call_signature own;
};

/// Each begins the call of MPI that its kind is; the MPI status.
namespace mpi_calls {

int exchange_signatures(mpi_call& in, MPI_Comm with, const collective_operation& what);
/// `what` is a collective call with elements, on `size` members, of which this is `member`.
int begin(mpi_call& in, MPI_Comm with, const collective_operation& what, int member, int size);
/// Brings the results to where the caller wants them.
void finish(mpi_call& in, const collective_operation& what, int member, int size);

}  // namespace mpi_calls
}  // namespace troupe
