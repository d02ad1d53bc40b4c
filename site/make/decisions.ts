import { posix } from 'node:path'
import type { MadePage } from './made-page.js'
import { piecesOf } from './piece.js'
import type { Group } from './site.js'

const FOLDER = 'docs/decisions'

/** The groups with a page for each document of the decisions, in the group that is named. */
export function withDecisions(
  groups: readonly Group[],
  documents: ReadonlyMap<string, string>,
  group: string,
): readonly Group[] {
  const pages = decisionsIn(documents).map((file) => ({ path: pathOf(file), holds: [`${file}#*`] }))
  return groups.map((one) =>
    one.name === group ? { ...one, pages: [...one.pages, ...pages] } : one,
  )
}

/** The list of the decisions: where a link to their folder leads. */
export function listOfDecisions(documents: ReadonlyMap<string, string>, group: string): MadePage {
  const lines = decisionsIn(documents).map((file) => {
    const [lead] = piecesOf(file, documents.get(file) ?? '')
    return `- [${lead?.title}](/${pathOf(file)})`
  })
  const text = `# Decisions\n\nWhy things are as they are.\n\n${lines.join('\n')}\n`
  return { path: 'decisions/index', title: 'All decisions', group, text, standsFor: [FOLDER] }
}

const decisionsIn = (documents: ReadonlyMap<string, string>): readonly string[] =>
  [...documents.keys()].filter((file) => posix.dirname(file) === FOLDER).sort()

const pathOf = (file: string): string => `decisions/${posix.basename(file, '.md')}`
