import { ManyworldsError } from '../errors.ts'
import { type GivenModel, isLanguageModel } from './language-model.ts'
import type { ModelPrice, ModelSettings } from './settings.ts'

const KEYS: Readonly<Record<keyof ModelPrice, true>> = { input: true, output: true, cachedInput: true }

/** Gives a model object of an AI SDK provider its price, for figures of cost and for `maxCostUsd`. Returns the object. */
export function withPrice<Model extends GivenModel>(model: Model, price: ModelPrice): Model & { price: ModelPrice } {
  const isValid =
    typeof price === 'object' &&
    price !== null &&
    Object.entries(price).every(([key, usd]) => Object.hasOwn(KEYS, key) && Number.isFinite(usd) && usd >= 0)
  if (!isValid)
    throw new ManyworldsError(
      'CONFIG_INVALID',
      'withPrice(): the price must be an object such as { input: 3, output: 15 }, in USD per million tokens',
    )
  return Object.assign(model, { price })
}

/** Undefined if no price was set, also if it is empty. */
export const priceOf = ({ price }: ModelSettings | GivenModel): ModelPrice | undefined =>
  price?.input === undefined && price?.output === undefined ? undefined : price

/** The error for a limit of cost that cannot be kept. `what`: who calls the model, and what limits its cost. */
export function noPrice(name: string, given: ModelSettings | GivenModel, what: string): ManyworldsError {
  const shown = isLanguageModel(given) ? `${given.modelId} of ${given.provider}` : given.model
  const how = isLanguageModel(given)
    ? 'withPrice(model, { input: 3, output: 15 })'
    : 'price: { input: 3, output: 15 } in `models` or models.json'
  return new ManyworldsError(
    'MODEL_NO_PRICE',
    `${what}, but model '${name}' (${shown}) has no price, so its cost cannot be counted. Set it in USD per million tokens: ${how}; { input: 0, output: 0 } for a model that costs nothing`,
  )
}
