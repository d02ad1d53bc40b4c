import { createPrivateKey, type KeyObject, randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import * as z from 'zod'
import { StartError } from '../start-error.js'
import type { SigningKey } from './signing-key.js'

/** Private keys, which only the owner may read. */
const FILE_MODE = 0o600
const DIRECTORY_MODE = 0o700

const milliseconds = z.int().nonnegative()
const document = z.strictObject({
  version: z.literal(1),
  keys: z.array(
    z.strictObject({
      kid: z.string().regex(/^(d-\d+|s-[0-9a-f-]+)$/),
      createdMs: milliseconds,
      signsFromMs: milliseconds,
      privateKey: z.string().transform(toRsaKey),
    }),
  ),
})

/**
 * Reads the keys of an earlier run; none if there is no such file.
 * @throws {StartError} if it cannot be read or is damaged. The message never quotes the file,
 * because it holds private keys.
 */
export async function readKeysFile(path: string): Promise<SigningKey[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new StartError(`the keys file ${path} cannot be read (${error.code})`)
  })
  if (text === undefined) return []
  try {
    return document.parse(JSON.parse(text)).keys
  } catch {
    throw new StartError(
      `the keys file ${path} is damaged; restore it, or move it away to start with new keys`,
    )
  }
}

/** Replaces the file in one step, so that a crash leaves either the old keys or the new ones. */
export async function writeKeysFile(path: string, keys: readonly SigningKey[]): Promise<void> {
  const text = JSON.stringify({ version: 1, keys: keys.map(toStored) }, null, 2)
  const temporary = `${path}.${randomUUID()}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true, mode: DIRECTORY_MODE })
    await writeDurably(temporary, `${text}\n`)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    const { code } = error as NodeJS.ErrnoException
    throw new StartError(`the keys file ${path} cannot be written (${code})`, { cause: error })
  }
}

/** Syncs the data first, because a rename may reach the disk before the data. */
async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', FILE_MODE)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

function toStored({ kid, createdMs, signsFromMs, privateKey }: SigningKey) {
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' })
  return { kid, createdMs, signsFromMs, privateKey: pem }
}

function toRsaKey(pem: string): KeyObject {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyType !== 'rsa') throw new TypeError('not an RSA key')
  return key
}
