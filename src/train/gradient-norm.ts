/** The Euclidean norm of a gradient in one or more parts, summed in order. */
export function gradientNorm(parts: readonly ArrayLike<number>[]): number {
  let squares = 0
  for (const part of parts) for (let i = 0; i < part.length; i++) squares += part[i]! * part[i]!
  return Math.sqrt(squares)
}

/** The factor that limits a gradient's norm to `clipNorm`. */
export const clipScale = (norm: number, clipNorm: number): number => (norm > clipNorm ? clipNorm / norm : 1)
