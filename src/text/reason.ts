declare const nonEmpty: unique symbol

/** A text that is not empty: an error made of it never ends with a colon and nothing behind it. */
export type Reason = string & { readonly [nonEmpty]: true }

/** The text, or the other one if it is empty: texts of other machines and of Node may be. */
export const reasonOf = <Otherwise extends string>(
  text: string | undefined,
  otherwise: Otherwise extends '' ? never : Otherwise,
): Reason => (text?.trim() ? text : otherwise) as Reason
