import { isUtf8 } from 'node:buffer'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { type FailureCode, usageError } from '../frame/command-failure.js'

/** Whether only its owner may read a file, or everyone may. */
type Secrecy = 'secret' | 'public'

const MAX_BYTES = 1024 * 1024
const OPEN_TO_OTHERS = 0o077

/**
 * Reads a regular file of at most 1 MiB in UTF-8; follows links. `name` is the name of the option.
 *
 * @throws CommandFailure (2), without the path and without any of the contents.
 */
export async function readTextFile(name: string, path: string, secrecy: Secrecy): Promise<string> {
  const bytes = await readFileBytes(name, path, secrecy)
  if (!isUtf8(bytes)) throw usageError(`the ${name} file is not valid UTF-8`, 'file')
  return new TextDecoder().decode(bytes)
}

/** Like `readTextFile`, for a file of any bytes. */
export async function readFileBytes(name: string, path: string, secrecy: Secrecy): Promise<Buffer> {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(
    (error: NodeJS.ErrnoException) => {
      throw usageError(`the ${name} file ${openingFault(error)}`, 'file')
    },
  )
  try {
    // Checks the opened file: by now, another file may have taken its name.
    const stats = await handle.stat()
    const { mode, size } = stats
    if (!stats.isFile()) throw usageError(`${name} must name a regular file`, 'file')
    if (secrecy === 'secret' && isOpenToOthers(mode)) {
      throw usageError(
        `other users can read or change the ${name} file: run chmod 600 on it`,
        'file',
      )
    }
    if (size > MAX_BYTES) throw usageError(`the ${name} file is larger than 1 MiB`, 'file')
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(size), 0, size, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

function openingFault({ code }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'does not exist: check its path'
  if (code === 'EACCES') return 'is not readable for this user: check its owner and its permissions'
  return `cannot be opened${code ? ` (${code})` : ''}`
}

/** Always false on Windows, which has no permission bits. */
const isOpenToOthers = (mode: number): boolean =>
  process.platform !== 'win32' && (mode & OPEN_TO_OTHERS) !== 0

/**
 * Reads JSON from a file. `code` is the failure code for a text that is not JSON.
 *
 * @throws CommandFailure (2), without any of the contents.
 */
export async function readJsonFile(
  name: string,
  path: string,
  { secrecy, code = 'file' }: { readonly secrecy: Secrecy; readonly code?: FailureCode },
): Promise<unknown> {
  const text = await readTextFile(name, path, secrecy)
  try {
    return JSON.parse(text)
  } catch {
    // The message of V8 may quote the text.
    const fault =
      text.trim() === ''
        ? 'is empty'
        : 'is not JSON: look for a trailing comma, a comment or single quotes'
    throw usageError(`the ${name} file ${fault}`, code)
  }
}
