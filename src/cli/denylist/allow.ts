import type { DenylistTarget } from '../../verification/denylist/denylist-entry.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { readIssuer } from '../input/policy-file.js'
import { columns, INDENT } from '../output/columns.js'
import { CHANGE_OPTIONS, changeList, readAuthor } from './change.js'
import { readKind, valueMissing } from './deny-target.js'

const WHY = '--policy FILE --reason TEXT'

export const allow: Command = {
  name: 'allow',
  summary: 'Ends a denylist entry in every receiver',
  usage: [`caller|key|token VALUE ${WHY}`, `issued-before ${WHY}`],
  maxValues: 2,
  options: { Options: CHANGE_OPTIONS },
  exitCodes: {
    1: 'nothing was denied, a receiver has not applied the change yet, or there is no receiver',
  },
  run,
}

async function run(context: CommandContext): Promise<CommandResult> {
  const { arguments: args } = context
  const target = await readTarget(context)
  const { kind, issuer } = target
  const reason = args.shortText('reason') ?? args.required('reason')
  const by = readAuthor(context)
  const value = kind === 'issued-before' ? 'any cut-off' : target.value
  const shown = columns(Object.entries({ [kind]: value, issuer, reason, by }), INDENT)
  return await changeList(context, async ({ denylist, callOptions }) => {
    const { version, wasListed } = await denylist.allow(target, callOptions)
    return {
      ...(!wasListed && { exitCode: 1 }),
      lines: [wasListed ? 'Allowed again' : NOT_LISTED, ...shown],
      json: { entry: { ...target, reason, by }, wasListed },
      version,
    }
  })
}

const NOT_LISTED = 'Nothing was denied. A mark ends the entry in any receiver that still has it'

/** @throws CommandFailure (2) */
async function readTarget(context: CommandContext): Promise<DenylistTarget> {
  const { arguments: args } = context
  const [, value] = args.values
  const kind = readKind(args)
  if (kind === 'issued-before') {
    if (value !== undefined) throw usageError('allow issued-before does not accept a value')
    return { kind, issuer: (await readIssuer(context)).issuer }
  }
  if (value === undefined) throw valueMissing(kind)
  return { kind, issuer: (await readIssuer(context)).issuer, value }
}
