/**
 * exp, expm1, log and tanh implemented with + − × ÷ only; exp and log follow fdlibm (error below one unit in the last
 * place). The functions of `Math`, and `**`, may differ between Node versions and machines, and training curves must be
 * reproducible bit for bit.
 */

const LN2_HIGH = 0.6931471803691238
const LN2_LOW = 1.9082149292705877e-10
const INVERSE_LN2 = Math.LOG2E

/** 2 to the power of -1074 … 1023. */
const POWERS = Float64Array.from({ length: 1074 + 1024 }, () => 1)
for (let k = 1; k < 1024; k++) POWERS[1074 + k] = POWERS[1073 + k]! * 2
for (let k = 1; k <= 1074; k++) POWERS[1074 - k] = POWERS[1075 - k]! / 2

export function exp(x: number): number {
  if (!(x > -746)) return Number.isNaN(x) ? x : 0
  if (x > 709.782712893384) return Infinity
  const k = Math.trunc(INVERSE_LN2 * x + (x < 0 ? -0.5 : 0.5))
  const high = x - k * LN2_HIGH
  const low = k * LN2_LOW
  const r = high - low
  const t = r * r
  const c =
    r -
    t *
      (0.16666666666666602 +
        t *
          (-0.0027777777777015593 +
            t * (6.613756321437934e-5 + t * (-1.6533902205465252e-6 + t * 4.1381367970572385e-8))))
  const y = 1 - (low - (r * c) / (2 - c) - high)
  if (k > 1023) return y * 2 * POWERS[2097]!
  if (k < -1074) return (y / 4) * POWERS[1076 + k]!
  return y * POWERS[1074 + k]!
}

/** exp(x) − 1, accurate to 14 digits. */
export function expm1(x: number): number {
  if (x > 0.03 || x < -0.03 || Number.isNaN(x)) return exp(x) - 1
  // A series, because for small x the subtraction would lose digits.
  let sum = 0
  for (let n = 9; n > 0; n--) sum = ((1 + sum) * x) / n
  return sum
}

const TWO_64 = 2 ** 64
const SQRT2 = Math.SQRT2

export function log(x: number): number {
  if (!(x > 0)) return x === 0 ? -Infinity : NaN
  if (x === Infinity) return x
  // Scale by powers of two, which is exact. Arguments are mostly sums of a few exponentials, so the loops are short.
  let k = 0
  while (x > TWO_64) {
    x /= TWO_64
    k += 64
  }
  while (x < 1 / TWO_64) {
    x *= TWO_64
    k -= 64
  }
  while (x > SQRT2) {
    x /= 2
    k++
  }
  while (x < SQRT2 / 2) {
    x *= 2
    k--
  }
  const f = x - 1
  const s = f / (2 + f)
  const z = s * s
  const w = z * z
  const odd = w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373))
  const even = z * (0.6666666666666735 + w * (0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)))
  const half = 0.5 * f * f
  return k * LN2_HIGH - (half - (s * (half + (odd + even)) + k * LN2_LOW) - f)
}

/** The hyperbolic tangent, accurate to 14 digits. */
export function tanh(x: number): number {
  const t = expm1(x < 0 ? 2 * x : -2 * x)
  const size = -t / (t + 2)
  return x < 0 ? -size : size
}
