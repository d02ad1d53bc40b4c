import type { DenylistTarget } from '../../verification/denylist/denylist-entry.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { readIssuer } from '../input/policy-file.js'
import { columns } from '../output/columns.js'
import { awaitReceivers } from './await-receivers.js'
import { CHANGE_OPTIONS, readAuthor, readWaitMs, shortText } from './change-options.js'
import { readKind, valueMissing } from './deny-target.js'
import { withDenylist } from './denylist-access.js'

const WHY = '--policy FILE --reason TEXT'

export const allow: Command = {
  name: 'allow',
  summary: 'Ends a denylist entry in every receiver',
  usage: [`caller|key|token VALUE ${WHY}`, `issued-before ${WHY}`],
  maxValues: 2,
  options: CHANGE_OPTIONS,
  exit1Help:
    'nothing was denied, a receiver has not applied the change yet, or there is no receiver',
  examples: [
    'service-auth allow caller billing --policy policy.json --reason "key replaced"',
    'service-auth allow issued-before --issuer https://core.example --reason "all tokens renewed"',
  ],
  run,
}

async function run(context: CommandContext): Promise<CommandResult> {
  const allowed = readAllowed(context)
  const { issuer } = await readIssuer(context)
  const target: DenylistTarget = { issuer: shortText('the issuer', issuer), ...allowed }
  const author = readAuthor(context)
  const waitMs = readWaitMs(context)
  return await withDenylist(context, async (access) => {
    const { version, wasListed } = await access.denylist.allow(target, access.callOptions)
    const { kind } = target
    const rows = [
      [kind, kind === 'issued-before' ? 'any cut-off' : target.value],
      ['issuer', issuer],
      ['reason', author.reason],
      ['by', author.by],
    ]
    const written = {
      lines: [wasListed ? 'Allowed again' : NOT_LISTED, ...columns(rows, '  ')],
      json: { entry: { ...target, ...author }, version, wasListed },
    }
    const result = await awaitReceivers(access, { version, waitMs, written })
    return wasListed ? result : { ...result, exitCode: 1 }
  })
}

const NOT_LISTED = 'Nothing was denied. A mark ends the entry in any receiver that still has it'

function readAllowed({ arguments: { values } }: CommandContext) {
  const kind = readKind(values[0])
  const [, value] = values
  if (kind === 'issued-before') {
    if (value !== undefined)
      throw usageError('usage', 'allow issued-before does not accept a value')
    return { kind }
  }
  if (value === undefined) throw valueMissing(kind)
  return { kind, value: shortText(`the value of ${kind}`, value) }
}
