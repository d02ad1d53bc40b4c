import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createSigningKey, type SigningKey } from '../../src/testing/issuer-keys.js'

const FOLDER = new URL('../../node_modules/.cache/express-service-auth/', import.meta.url)
const FILE = new URL('spare-keys.json', FOLDER)
/** More than any test needs at once. */
const SPARE_KEYS = 12

/**
 * Makes the keys that all test files share, once for good: an RSA key takes 0.2 s of processor time.
 * Called before the files run, so that they cannot race for it.
 */
export function makeSpareKeys(): void {
  if (readSpareKeys().length === SPARE_KEYS) return
  const keys = Array.from({ length: SPARE_KEYS }, () =>
    generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    }),
  )
  mkdirSync(FOLDER, { recursive: true })
  const unfinished = fileURLToPath(FILE) + process.pid
  writeFileSync(unfinished, JSON.stringify(keys.map(({ privateKey }) => privateKey)), {
    mode: 0o600,
  })
  renameSync(unfinished, FILE)
}

let spareKeys: string[] | undefined
let taken = 0

/** Another key than the last ones of this process; they come round again. */
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
