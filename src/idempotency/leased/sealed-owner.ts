/** The form of an encryption key's id. */
export const KEY_ID_FORM: RegExp = /^[A-Za-z0-9._-]{1,64}$/

const SEALED_OWNER_FORM = /^jwe:([A-Za-z0-9._-]{1,64}):/

/**
 * The owner of a run whose result will be encrypted. The store keeps it, so that a record that has no
 * result yet tells by which key one would be encrypted.
 */
export const sealedOwner = (keyId: string, owner: string): string => `jwe:${keyId}:${owner}`

/** The key id in such an owner; `undefined` for any other owner. */
export const keyIdOf = (owner: string): string | undefined => SEALED_OWNER_FORM.exec(owner)?.[1]
