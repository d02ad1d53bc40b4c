import {
  type Declaration,
  meaningOf,
  membersOf,
  type ShownType,
  summaryOf,
  unionIn,
} from './reflection.js'

/** The address of the place that tells of an export, from the page that is made. */
export type LinkTo = (target: Declaration) => string

/**
 * What a type that has cases is, as tables: what all cases have, and each case with its meaning.
 * `undefined` where no comment says more than the type itself.
 */
export function shapeOf(type: ShownType | undefined, linkTo: LinkTo): string | undefined {
  const union = unionIn(type)
  if (union === undefined) return undefined
  const cases = (union.types ?? []).map((one, index) => {
    const meaning = summaryOf(union.elementSummaries?.[index])
    return { one, meaning: [meaning, ...wordsOfMembers(one)].filter(Boolean).join(' ') }
  })
  if (cases.every(({ meaning }) => meaning === '')) return undefined
  const rows = cases.map(({ one, meaning }) => [caseCell(one, linkTo), meaning])
  return [commonTable(membersOf(type), linkTo), table(['case', 'meaning'], rows)]
    .filter(Boolean)
    .join('\n\n')
}

function commonTable(members: readonly Declaration[], linkTo: LinkTo): string {
  if (members.length === 0) return ''
  const rows = members.map((one) => [memberCell(one, linkTo), meaningOf(one)])
  return table(['in each', 'meaning'], rows)
}

function caseCell(one: ShownType, linkTo: LinkTo): string {
  const members = membersOf(one)
  if (members.length === 0) return typeText(one, linkTo)
  return members.map((member) => memberCell(member, linkTo)).join('<br>')
}

const memberCell = ({ name, flags, type, signatures }: Declaration, linkTo: LinkTo): string => {
  const label = `${name}${flags?.isOptional ? '?' : ''}`
  if (type === undefined || signatures !== undefined) return `\`${label}\``
  return `\`${label}\`: ${typeText(type, linkTo)}`
}

const typeText = (type: ShownType, linkTo: LinkTo): string => {
  const text = `\`${type.toString().replaceAll('"', "'")}\``
  return type.reflection === undefined ? text : `[${text}](${linkTo(type.reflection)})`
}

const wordsOfMembers = (one: ShownType): readonly string[] =>
  membersOf(one).flatMap((member) => {
    const meaning = meaningOf(member)
    return meaning === '' ? [] : [`\`${member.name}\`: ${meaning}`]
  })

/** A table in Markdown. */
export const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  [heads, heads.map(() => '---'), ...rows.map((row) => row.map(cell))]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n')

const cell = (text: string): string => text.replaceAll(/\\?\|/g, '\\|')
