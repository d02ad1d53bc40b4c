import { withoutQuery } from '../../base/decision/key-set-event.js'

/** The usual cause of a 404: the address of one is combined with the path of the other. */
export const KEY_SET_PATHS =
  'a core itself publishes /.well-known/jwks.json, the backend SDK /auth/jwt/jwks.json'

const addresses = new WeakMap<object, string>()

/** Remembers which key set is behind an object that users hold. */
export function withAddress<Holder extends object>(
  holder: Holder,
  jwksUri: string | undefined,
): Holder {
  if (jwksUri !== undefined) addresses.set(holder, withoutQuery(jwksUri))
  return holder
}

/** The address of the key set behind it, without its query; `undefined` of other objects. */
export const addressOf = (holder: object): string | undefined => addresses.get(holder)
