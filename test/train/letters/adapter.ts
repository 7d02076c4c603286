/** Weights as the bytes of a LoRA adapter: safetensors, with PEFT's configuration in the metadata. */
export function adapterOf(weights: Float64Array): Uint8Array {
  const header = Buffer.from(
    JSON.stringify({
      __metadata__: { adapter_config: JSON.stringify({ peft_type: 'LORA', r: 1 }) },
      letters: { dtype: 'F64', shape: [weights.length], data_offsets: [0, weights.byteLength] },
    }),
  )
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, Buffer.from(weights.buffer, weights.byteOffset, weights.byteLength)])
}

export function weightsIn(bytes: Uint8Array): Float64Array {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true))
  return new Float64Array(Uint8Array.from(bytes.subarray(8 + length)).buffer)
}
