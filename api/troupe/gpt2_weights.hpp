#pragma once
#include <filesystem>
#include <vector>

#include "troupe/nn/module.hpp"

namespace troupe {

// GPT-2 weights with the names and layout of the published checkpoints (Hugging Face's GPT2Model):
// "wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.weight", ..., "ln_f.bias". The projections
// c_attn, c_proj and c_fc are stored as [in, out], the transpose of a Linear's weight. The output layer
// shares the token embedding unless the file has "lm_head.weight".

/// Loads f32, bf16, f16 or f64 tensors from a safetensors file, or what else read_weights reads, into a
/// materialized nn::GPT or nn::gpt_layers. Names may begin with "transformer.", "module.", "_orig_mod." or
/// "model."; projections may also be [out, in], as nanoGPT has them. Skips the causal masks "h.0.attn.bias"
/// and "h.0.attn.masked_bias". An untied output layer gets the token embedding if the file has no
/// "lm_head.weight". Throws bad_input and changes nothing if tensors are missing, unexpected or of another
/// shape. The message names the first of each and, where there is one, the reason: another number of blocks,
/// a padded vocabulary, no biases.
void read_gpt2_weights(const std::filesystem::path& file, nn::Module& model);

/// Writes a safetensors file in this layout, with names without "transformer.". Throws bad_input if the file
/// cannot be written.
void write_gpt2_weights(const std::filesystem::path& file, nn::Module& model);

/// Whether the tensors have the published layout (projections [in, out]). Snapshots of Troupe do not.
bool have_gpt2_layout(const std::vector<named_tensor>& tensors);

}  // namespace troupe
