/** How often tasks may do something: one of the three. */
export type RateLimit =
  | { readonly perSecond: number; readonly perMinute?: never; readonly perHour?: never }
  | { readonly perMinute: number; readonly perSecond?: never; readonly perHour?: never }
  | { readonly perHour: number; readonly perSecond?: never; readonly perMinute?: never }
