import type { CommandContext } from '../frame/command.js'
import { type FailureCode, wrong } from '../frame/command-failure.js'
import { readFileOf } from '../input/private-file.js'
import { readStandardInput } from '../input/standard-input.js'

/** What a header may hold: the core's own keys have letters, digits, `=` and `-`. */
const HEADER_VALUE = /^[\x21-\x7e]+$/

/**
 * The API key of the core, from a file that only its owner can read or from standard input.
 *
 * @throws CommandFailure (2), without a word of the key.
 */
export async function readApiKey(
  context: Pick<CommandContext, 'arguments' | 'stdin' | 'note'>,
): Promise<string> {
  const { arguments: given } = context
  const file = given.text('api-key-file')
  const isOnStandardInput = given.flag('api-key-stdin')
  if ((file !== undefined) === isOnStandardInput) {
    throw wrong('usage', 'give either --api-key-file or --api-key-stdin')
  }
  if (file === undefined) {
    return checked(await readStandardInput(context, 'the API key'), 'input', 'standard input')
  }
  const text = await readFileOf('--api-key-file', file, 'secret')
  return checked(text.replace(/\r?\n$/, ''), 'file', 'the file of --api-key-file')
}

function checked(key: string, code: FailureCode, place: string): string {
  if (HEADER_VALUE.test(key)) return key
  throw wrong(code, `${place} must hold an API key and nothing else: one word in ASCII`)
}
