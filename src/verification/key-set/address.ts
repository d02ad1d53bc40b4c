import { withoutQuery } from '../../base/decision/key-set-event.js'

/** For the message of a 404, which most often comes from the address of one with the path of the other. */
export const KEY_SET_PATHS =
  'a core itself publishes /.well-known/jwks.json, the backend SDK /auth/jwt/jwks.json'

const addresses = new WeakMap<object, string>()

/** Remembers the address of the key set for an object that the app holds. */
export function withKeySetAddress<Holder extends object>(
  holder: Holder,
  jwksUri: string | undefined,
): Holder {
  if (jwksUri !== undefined) addresses.set(holder, withoutQuery(jwksUri))
  return holder
}

/** The address of the object's key set, without its query; `undefined` for other objects. */
export const keySetAddressOf = (holder: object): string | undefined => addresses.get(holder)
