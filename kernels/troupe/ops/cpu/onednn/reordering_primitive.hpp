#pragma once
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <unordered_map>
#include <vector>

#include "troupe/ops/cpu/onednn/relayout.hpp"

namespace troupe::cpu {

/// A oneDNN primitive with operands in plain formats. Operands for which the primitive prefers another format
/// are reordered before and after it, in scratch memory from the caching allocator. Created once per shape
/// and thread and run repeatedly; not thread-safe.
class reordering_primitive {
 public:
  explicit reordering_primitive(dnnl::primitive primitive);

  /// Add operands in the order in which `run` takes them. `argument` is DNNL_ARG_...
  void add_input(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& own);
  void add_output(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& own);
  void add_scratchpad(const dnnl::memory::desc& own);

  /// Runs the primitive and returns when the outputs are written. Inputs are not modified, though oneDNN
  /// takes them as void*.
  void run(std::span<void* const> elements);

 private:
  struct operand {
    dnnl::memory plain, own;
    bool is_input = true;
    std::unique_ptr<const relayout> reorder;  ///< null if the formats are equal
  };

  void add(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& own, bool is_input);
  void place_in_scratch(const dnnl::memory& memory);

  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::vector<operand> operands_;
  /// Memory objects within one scratch block, and their offsets.
  std::vector<std::pair<dnnl::memory, std::int64_t>> in_scratch_;
  std::int64_t scratch_bytes_ = 0;
};

/// The calling thread's oneDNN engine for the CPU.
const dnnl::engine& this_engine();

}  // namespace troupe::cpu
