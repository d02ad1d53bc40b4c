import { type Policy, parsePolicies, parsePolicy } from '../../verification/policy/policy.js'
import type { OptionSpecs } from '../frame/arguments.js'
import type { CommandContext } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { readJsonFile } from './private-file.js'

export const POLICY_OPTION: OptionSpecs = {
  '--policy FILE': "the receiver's policy, as JSON",
}

/** For commands that accept `--issuer` instead of `--policy`. */
export const ISSUER_OPTION: OptionSpecs = {
  '--issuer URL': 'the exact iss of the tokens, instead of --policy',
}

/**
 * Reads the policies that `--policy` names: one, or a list of several.
 *
 * @throws CommandFailure (2), with the message of `parsePolicy` or `parsePolicies` if one is invalid.
 */
export const readPolicies = (context: Input): Promise<readonly Policy[]> =>
  readPolicyFile(context, (input) =>
    Array.isArray(input) ? parsePolicies(input) : [parsePolicy(input)],
  )

type Input = Pick<CommandContext, 'arguments'>

async function readPolicyFile<T>({ arguments: args }: Input, parse: (input: unknown) => T) {
  const path = args.required('policy')
  const input = await readJsonFile('--policy', path, { secrecy: 'public', code: 'policy' })
  try {
    return parse(input)
  } catch (error) {
    if (error instanceof TypeError) throw usageError(error.message, 'policy')
    throw error
  }
}

/** The issuer, and the policy if `--policy` named it. */
export interface NamedIssuer {
  readonly issuer: string
  readonly policy: Policy | undefined
}

/**
 * Reads the issuer that `--issuer` or `--policy` names.
 *
 * @throws CommandFailure (2) unless exactly one of them is given.
 */
export async function readIssuer(context: Input): Promise<NamedIssuer> {
  const args = context.arguments
  if (args.either('issuer', 'policy') === 'issuer') {
    return { issuer: args.required('issuer'), policy: undefined }
  }
  const policy = await readPolicyFile(context, (input) => {
    if (!Array.isArray(input)) return parsePolicy(input)
    throw new TypeError('the --policy file must contain one policy; only doctor reads a list')
  })
  return { issuer: policy.issuer, policy }
}
