#pragma once
#include <span>
#include <vector>

namespace troupe {

/// A piece of gradients that is to be reduced, as it was measured; in seconds.
struct timed_piece {
  double ready = 0;  ///< when its gradients are there
  double takes = 0;  ///< how long it holds the link
  int needed = 0;    ///< its place in the order in which the next forward pass needs weights
};

/// In which order pieces go over a link that carries one after the other: whenever it is free, of those that
/// are ready the one that is needed first; equals in the order given. If none is ready, the next that will
/// be. So what the next forward pass needs at once overtakes what came earlier and is needed later
/// (Jayarajan et al. 2019, "Priority-based Parameter Propagation", section 3). Indices into `pieces`.
std::vector<int> communication_order(std::span<const timed_piece> pieces);

}  // namespace troupe
