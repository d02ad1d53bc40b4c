import { createCipheriv, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { argon2Verify, bcryptVerify } from 'hash-wasm'
import { assertTenant, shownAccount, stored } from './accounts.js'
import { field, isString, parseObject } from './input.js'
import { firebaseParts, normaliseEmail } from './read-login-method.js'
import type { Route } from './router.js'
import { keyOf, type Tables } from './tables.js'

/** The route for the sign-in with an e-mail address and a password. */
export function signInRoute(tables: Tables, firebaseSignerKey: string | undefined): Route {
  return {
    tenants: 'served',
    answers: {
      POST: async ({ body, tenantId }) => {
        const input = parseObject(await body())
        const email = stored(normaliseEmail(field(input, 'email', isString)))
        const password = field(input, 'password', isString)
        assertTenant(tables, tenantId)
        return { status: 200, body: await signIn({ email, password, tenantId }) }
      },
    },
  }

  async function signIn({ email, password, tenantId }: Credentials): Promise<object> {
    const id = tables.logins.get(keyOf({ tenantId, value: `emailpassword ${email}` })) ?? ''
    const account = tables.accounts.get(tables.accountOf.get(id) ?? '')
    const method = account?.methods.find(({ superTokensUserId }) => superTokensUserId === id)
    const hash = method?.passwordHash ?? ''
    const isPassword = account && (await isPasswordOf(password, hash, firebaseSignerKey))
    if (!isPassword) return { status: 'WRONG_CREDENTIALS_ERROR' }
    const user = shownAccount(account, tables)
    return { status: 'OK', user, recipeUserId: tables.externalIds.get(id) ?? id }
  }
}

interface Credentials {
  /** Normalised. */
  readonly email: string
  readonly password: string
  readonly tenantId: string
}

/** Low, because the job of a test may hash thousands of passwords. */
const COST = 1024
const BYTES = 32
/** bcrypt ignores the bytes after these. */
const BCRYPT_BYTES = 72
const FIREBASE_KEY_BYTES = 32
const MAX_SCRYPT_BYTES = 2 ** 28

/** Returns the hash of a plain password's UTF-8, like a core. */
export function hashPassword(password: string): string {
  const salt = randomBytes(16)
  return ['', 'scrypt', salt.toString('hex'), digest(password, salt).toString('hex')].join('$')
}

/**
 * Returns whether a stored hash, of `hashPassword` or imported, belongs to the password. An
 * imported hash that is not complete belongs to none.
 */
async function isPasswordOf(
  password: string,
  hash: string,
  firebaseSignerKey = '',
): Promise<boolean> {
  const bytes = Buffer.from(password)
  if (hash.startsWith('$scrypt$')) return isDigest(password, hash)
  if (hash.startsWith('$f_scrypt$')) return isFirebaseHash(password, hash, firebaseSignerKey)
  const verified = hash.startsWith('$argon2')
    ? argon2Verify({ password: bytes, hash })
    : bcryptVerify({ password: bytes.subarray(0, BCRYPT_BYTES), hash: toVersion2a(hash) })
  return verified.catch(() => false)
}

function isDigest(password: string, hash: string): boolean {
  const [, , salt = '', expected = ''] = hash.split('$')
  return timingSafeEqual(digest(password, Buffer.from(salt, 'hex')), Buffer.from(expected, 'hex'))
}

const digest = (password: string, salt: Buffer): Buffer =>
  scryptSync(password, salt, BYTES, { N: COST })

/** The core reads each version of bcrypt as this one. */
function toVersion2a(hash: string): string {
  return hash.replace(/^\$2[bxy]/, '$2a')
}

/** The hash is the signer key, encrypted with a key that scrypt derives from the password. */
function isFirebaseHash(password: string, stored: string, signerKey: string): boolean {
  const parts = firebaseParts(stored)
  if (parts === undefined) return false
  const { hash, salt, memory, rounds, separator } = parts
  const salted = Buffer.concat([Buffer.from(salt, 'base64'), Buffer.from(separator, 'base64')])
  const cost = { N: 2 ** memory, r: rounds, maxmem: MAX_SCRYPT_BYTES }
  const key = scryptSync(password, salted, FIREBASE_KEY_BYTES, cost)
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16))
  return cipher.update(signerKey, 'base64', 'base64') + cipher.final('base64') === hash
}
