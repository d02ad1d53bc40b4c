import { createPrivateKey, createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSigningKey, type SigningKey } from '../../../src/testing/issuer/issuer-keys.js'
import { CACHE, writeCached } from '../process/cache.js'

const FILE = `${CACHE}/spare-keys.json`
/** More than any test uses at once. */
const SPARE_KEYS = 12

/**
 * Makes the keys that all test files and test runs share, because an RSA key takes 0.2 s of processor time.
 * Called before the test files run, so that they do not make them at the same time.
 */
export function makeSpareKeys(): void {
  if (readSpareKeys().length === SPARE_KEYS) return
  const keys = Array.from({ length: SPARE_KEYS }, () =>
    createSigningKey('spare').privateKey.export({ type: 'pkcs8', format: 'pem' }),
  )
  writeCached(FILE, JSON.stringify(keys))
}

let spareKeys: string[] | undefined
let taken = 0

/** Returns the next spare key of this process. After `SPARE_KEYS` calls, the first key comes again. */
export function takeKey(kid: string): SigningKey {
  spareKeys ??= readSpareKeys()
  const pem = spareKeys[taken % SPARE_KEYS]
  taken += 1
  if (pem === undefined) return createSigningKey(kid)
  const privateKey = createPrivateKey(pem)
  return { kid, privateKey, publicKey: createPublicKey(privateKey) }
}

function readSpareKeys(): string[] {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
