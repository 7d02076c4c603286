/** The Euclidean norm of a gradient that may be in several parts, summed in their order. */
export function gradientNorm(parts: readonly ArrayLike<number>[]): number {
  let squares = 0
  for (const part of parts) for (let i = 0; i < part.length; i++) squares += part[i]! * part[i]!
  return Math.sqrt(squares)
}

/** What to multiply a gradient with so that its norm is at most `clipNorm`. */
export const clipScale = (norm: number, clipNorm: number): number => (norm > clipNorm ? clipNorm / norm : 1)
