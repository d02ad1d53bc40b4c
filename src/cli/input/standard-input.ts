import { isUtf8 } from 'node:buffer'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'

const MAX_BYTES = 64 * 1024

/**
 * Reads the text on standard input to its end, without one trailing line break. `what` names the
 * input, such as `the token`.
 *
 * @throws CommandFailure (2) if it is empty, too long or not UTF-8; the message repeats none of it.
 */
export async function readStandardInput(
  { stdin, note }: Pick<CommandContext, 'stdin' | 'note'>,
  what: string,
): Promise<string> {
  if (stdin.isTTY) note(`Type or paste ${what}, then press Enter and Ctrl-D:`)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk as string)
    size += bytes.length
    if (size > MAX_BYTES)
      throw usageError(`${what} on standard input is longer than 64 KiB`, 'input')
    chunks.push(bytes)
  }
  const all = Buffer.concat(chunks)
  if (!isUtf8(all)) throw usageError(`${what} on standard input is not valid UTF-8`, 'input')
  const text = new TextDecoder().decode(all).replace(/\r?\n$/, '')
  if (text === '') throw usageError(`standard input is empty; it must contain ${what}`, 'input')
  return text
}
