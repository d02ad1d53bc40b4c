import type { DeniedKind, DenylistTarget } from '../denylist/entry.js'
import { awaitReceivers, resultOf } from './await-receivers.js'
import { columns } from './columns.js'
import type { Command, CommandContext, CommandResult } from './command.js'
import { readKind } from './denied-thing.js'
import { answered, withDenylist } from './denylist-client.js'
import { CHANGE_OPTIONS, readAuthor, readWaitMs, textOf } from './denylist-options.js'
import { wrong } from './failure.js'
import { readIssuer } from './policy-file.js'

const WHY = '--policy FILE --reason TEXT'

export const allow: Command = {
  name: 'allow',
  summary: 'Ends an entry of the denylist, in every receiver',
  usage: [`caller|key|token VALUE ${WHY}`, `issued-before ${WHY}`],
  maxValues: 2,
  options: CHANGE_OPTIONS,
  oneMeans: 'it was not listed, a receiver does not apply it yet, or there is none',
  examples: [
    'service-auth allow caller billing --policy policy.json --reason "its key is replaced"',
    'service-auth allow issued-before --issuer https://core.example --reason "all is renewed"',
  ],
  run,
}

async function run(context: CommandContext): Promise<CommandResult> {
  const kind = readKind(context.arguments.values[0])
  const { issuer } = await readIssuer(context)
  const target = readTarget(context, kind, textOf('the issuer', issuer))
  const author = readAuthor(context)
  const waitMs = readWaitMs(context)
  return await withDenylist(context, async (access) => {
    const { version, wasListed } = await answered(access.denylist.allow(target, access.asking))
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
    const result = resultOf(written, await awaitReceivers(access, { version, waitMs, written }))
    return wasListed ? result : { ...result, exitCode: 1 }
  })
}

const NOT_LISTED = 'Nothing was listed. A mark ends it wherever a receiver still holds it'

function readTarget(
  { arguments: { values } }: CommandContext,
  kind: DeniedKind,
  issuer: string,
): DenylistTarget {
  const [, value] = values
  if (kind === 'issued-before') {
    if (value !== undefined) throw wrong('usage', 'allow issued-before takes no value')
    return { issuer, kind }
  }
  if (value === undefined) throw wrong('usage', `${kind} needs a value`)
  return { issuer, kind, value: textOf(`the value of ${kind}`, value) }
}
