#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "troupe/contents/tensor_contents.hpp"

namespace troupe::snapshot {

/// A list of objects with "name", "dtype" and "shape" (the whole tensor's). Those that are not whole tensors
/// of all replicas have also "boxes" (objects with "offset" and "extent"), "elements" ([begin, end]) and
/// "replica", as far as they differ from that.
nlohmann::ordered_json contents_json(const std::vector<tensor_contents>& contents);

/// Throws nlohmann::json::exception for another form and snapshot_error for impossible contents.
std::vector<tensor_contents> contents_from_json(const nlohmann::ordered_json& list);

}  // namespace troupe::snapshot
