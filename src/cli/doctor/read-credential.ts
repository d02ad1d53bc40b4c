import { pathOfTarget } from '../../verification/confirmation/http-uri.js'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { readStandardInput } from '../input/standard-input.js'
import type { GivenProof } from './token-verdict.js'

const PROOF_OPTIONS = ['proof-stdin', 'method', 'url']

/** The token to check and its DPoP proof, if given. */
export interface Credential {
  readonly token?: string
  readonly proof?: GivenProof
}

/**
 * Reads the token and its proof from standard input, if the options say that they are there.
 *
 * @throws CommandFailure (2) if one of them is missing, or an option is given without the one it requires.
 */
export async function readCredential(context: CommandContext): Promise<Credential> {
  return context.arguments.flag('token-stdin') ? readFromInput(context) : withoutToken(context)
}

/** @throws CommandFailure (2) if an option is given that requires a token. */
function withoutToken({ arguments: args }: CommandContext): Credential {
  const stray = PROOF_OPTIONS.find((name) =>
    name === 'proof-stdin' ? args.flag(name) : args.text(name) !== undefined,
  )
  if (stray !== undefined) throw usageError('usage', `--${stray} requires --token-stdin`)
  return {}
}

async function readFromInput(context: CommandContext): Promise<Credential> {
  const args = context.arguments
  if (!args.flag('proof-stdin')) {
    for (const name of ['method', 'url']) {
      if (args.text(name) !== undefined)
        throw usageError('usage', `--${name} requires --proof-stdin`)
    }
    return { token: await readStandardInput(context, 'the token') }
  }
  const [method, url] = [args.required('method'), args.required('url')]
  if (pathOfTarget(method, url) === undefined) {
    throw usageError('usage', '--url must be a path with query, or an absolute URL')
  }
  const lines = (await readStandardInput(context, 'the token and the proof')).split(/\r?\n/)
  const [token = '', proof, ...more] = lines
  if (proof === undefined || more.length > 0) {
    throw usageError('input', 'standard input must be two lines: the token and the proof')
  }
  return { token, proof: { proof, method, url } }
}
