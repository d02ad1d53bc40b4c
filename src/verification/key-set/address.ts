import { withoutQuery } from '../../base/decision/key-set-event.js'

/** The usual cause of a 404: the address of one is combined with the path of the other. */
export const KEY_SET_PATHS =
  'a core itself publishes /.well-known/jwks.json, the backend SDK /auth/jwt/jwks.json'

const addresses = new WeakMap<object, string>()

/** Remembers the key set of an object that users hold. */
export function withKeySetAddress<Holder extends object>(
  holder: Holder,
  jwksUri: string | undefined,
): Holder {
  if (jwksUri !== undefined) addresses.set(holder, withoutQuery(jwksUri))
  return holder
}

/** The address of the object's key set, without its query; `undefined` for other objects. */
export const keySetAddressOf = (holder: object): string | undefined => addresses.get(holder)
