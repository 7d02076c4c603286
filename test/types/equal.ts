/** True only for the very same type: `any` equals nothing but itself, a union only the same union. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** `same<A, B>(true)` compiles if and only if the two types are the same. */
export declare function same<A, B>(yes: Equal<A, B>): void
